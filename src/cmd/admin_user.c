/*
 * Who the operator's program runs as, for whom it acts, and where programs are. bwrap started as
 * root is no sandbox, and files that root makes in the spool would lock the workers out: so root
 * becomes the service user before anything is touched.
 */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/user.h"
#include "cmd/admin.h"

static const char *const system_dirs[] = {"/usr/sbin", "/usr/local/sbin", "/sbin",
					  "/usr/bin",  "/usr/local/bin",  "/bin"};

static const struct passwd *named_user(const char *name, struct err *err)
{
	const struct passwd *pw = getpwnam(name);
	if (pw != NULL && pw->pw_uid != 0)
		return pw;
	err_set(err, ERR_DENIED,
		pw == NULL ? "there is no user %s on this machine"
			   : "sandboxes must not be run by %s",
		name);
	err_hint(err, "name an ordinary user; to make one: adduser --system --group spoolbox");
	return NULL;
}

bool admin_become(const struct conf *conf, const char *user, struct err *err)
{
	if (geteuid() != 0) {
		const struct passwd *pw = user != NULL ? getpwnam(user) : NULL;
		if (user == NULL || (pw != NULL && pw->pw_uid == geteuid()))
			return true;
		err_set(err, ERR_DENIED, "only root can change to user %s", user);
		return err_hint(err, "leave --user out, or start it as root");
	}
	if (user == NULL)
		return user_become_owner(conf->spool, err);
	const struct passwd *pw = named_user(user, err);
	return pw != NULL && user_become(pw->pw_uid, pw->pw_gid, err);
}

const char *admin_principal(const struct app *app)
{
	struct err err = ERR_INIT;
	AUTO_BUF header = BUF_INIT;
	const char *principal;
	if (app->token == NULL)
		return NULL;
	buf_printf(&header, "Bearer %s", app->token);
	return app_authenticate(app, buf_str(&header), &principal, &err) ? principal : NULL;
}

static bool try_dir(const char *dir, size_t len, const char *name, struct buf *out)
{
	buf_clear(out);
	buf_append(out, dir, len);
	buf_printf(out, "/%s", name);
	return access(buf_str(out), X_OK) == 0;
}

bool admin_find_ours(const char *name, struct buf *out)
{
	AUTO_BUF dir = BUF_INIT;
	if (fs_program_dir(&dir) && try_dir(dir.data, dir.len, name, out))
		return true;
	return try_dir(PKGLIBEXECDIR, strlen(PKGLIBEXECDIR), name, out);
}

bool admin_find_system(const char *name, struct buf *out)
{
	const char *path = getenv("PATH");
	while (path != NULL && *path != '\0') {
		size_t len = strcspn(path, ":");
		if (path[0] == '/' && try_dir(path, len, name, out))
			return true;
		path += len + (path[len] == ':');
	}
	for (size_t i = 0; i < ARRAY_LEN(system_dirs); i++)
		if (try_dir(system_dirs[i], strlen(system_dirs[i]), name, out))
			return true;
	return false;
}
