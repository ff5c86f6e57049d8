/* See user.h. Groups go first: afterwards there is no right to change them any more. */
#include "base/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

bool user_become_owner(const char *spool, struct err *err)
{
	struct stat st;
	if (geteuid() != 0)
		return true;
	if (stat(spool, &st) != 0) {
		err_set(err, ERR_UNAVAILABLE, "the spool %s cannot be read: %s", spool,
			strerror(errno));
		return err_hint(err,
				"Make it for the user who is to run Spoolbox: install -d -m 700 -o "
				"USER %s. Or set SMCP_SPOOL to the one that is meant.",
				spool);
	}
	if (st.st_uid == 0) {
		err_set(err, ERR_UNAVAILABLE,
			"Spoolbox was started as root and the spool %s is root's, and sandboxes "
			"must "
			"not be run by root",
			spool);
		return err_hint(err,
				"Give it to an ordinary user: chown -R USER %s. Or name the user: "
				"spoolbox --user USER ...",
				spool);
	}
	const struct passwd *pw = getpwuid(st.st_uid);
	return user_become(st.st_uid, pw != NULL ? pw->pw_gid : st.st_gid, err);
}
