/* See user.h. Groups go first: afterwards there is no right to change them any more. */
#include "base/user.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

bool user_become(uid_t uid, gid_t gid, struct err *err)
{
	const struct passwd *pw = getpwuid(uid);
	int rc = pw != NULL ? initgroups(pw->pw_name, gid) : setgroups(1, &gid);
	if (rc != 0 || setgid(gid) != 0 || setuid(uid) != 0)
		return err_sys(err, "become user %ld", (long)uid);
	if (pw != NULL) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	return true;
}
