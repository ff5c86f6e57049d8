/*
 * What a model must know before its first call, in the order of need. Numbers come from the
 * settings and installed programs from the host's /usr, which is the base template. The text is
 * read with every conversation, so each sentence has to earn its place; it stays below 4 KB.
 */
#include "mcp/instructions.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box/app.h"
#include "box/exec.h"
#include "box/python.h"

#define VERSION_MAX 32

/* --- what is installed --------------------------------------------------------------------- */

/* Programs worth naming, in bin/. */
static const char *const programs[] = {
	"python3", "pip3",        "node",      "npm",      "gcc",       "g++",     "clang",
	"make",    "cmake",       "go",        "rustc",    "javac",     "ruby",    "perl",
	"php",     "lua",         "R",         "git",      "jq",        "rg",      "sqlite3",
	"curl",    "zip",         "unzip",     "7z",       "xz",        "zstd",    "ffmpeg",
	"convert", "inkscape",    "gnuplot",   "dot",      "pandoc",    "xelatex", "qpdf",
	"gs",      "libreoffice", "pdftotext", "pdftoppm", "tesseract", "iconv",   "file",
	"xxd",
};

/* Python modules worth naming: what is imported. */
static const char *const modules[] = {
	"numpy",    "scipy", "pandas",   "matplotlib", "seaborn",  "sklearn", "PIL",       "cv2",
	"openpyxl", "xlrd",  "docx",     "pptx",       "PyPDF2",   "pypdf",   "reportlab", "lxml",
	"bs4",      "yaml",  "requests", "sympy",      "networkx", "jinja2",  "chardet",   "pytest",
};

static bool exists(const char *usr, const char *dir, const char *name, const char *suffix)
{
	char path[512];
	int len = snprintf(path, sizeof path, "%s/%s/%s%s", usr, dir, name, suffix);
	return len > 0 && (size_t)len < sizeof path && access(path, F_OK) == 0;
}

static bool has_program(const char *usr, const char *name)
{
	return exists(usr, "bin", name, "") || exists(usr, "local/bin", name, "");
}

/* Version as the name of a link's target tells it: python3 -> python3.11, gcc -> gcc-12. Empty
 * when it does not. */
static void get_version(const char *usr, const char *name, char version[static VERSION_MAX])
{
	char path[512], target[256];
	version[0] = '\0';
	snprintf(path, sizeof path, "%s/bin/%s", usr, name);
	ssize_t len = readlink(path, target, sizeof target - 1);
	if (len <= 0)
		return;
	target[len] = '\0';
	const char *digits = target + len;
	while (digits > target && (isdigit((unsigned char)digits[-1]) || digits[-1] == '.'))
		digits--;
	if (isdigit((unsigned char)*digits) && strlen(digits) < VERSION_MAX)
		memcpy(version, digits, strlen(digits) + 1);
}

static bool in_dir(const char *usr, const char *dir, const char *module)
{
	return exists(usr, dir, module, "") || exists(usr, dir, module, ".py");
}

/* Debian's packages, and those that pip installed for the whole machine. */
static bool has_module(const char *usr, const char *python_version, const char *module)
{
	char dir[128];
	snprintf(dir, sizeof dir, "local/lib/python%s/dist-packages", python_version);
	return in_dir(usr, "lib/python3/dist-packages", module) || in_dir(usr, dir, module);
}

static void put_programs(struct buf *out, const char *usr)
{
	char version[VERSION_MAX];
	const char *separator = "Installed: ";
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		if (!has_program(usr, programs[i]))
			continue;
		get_version(usr, programs[i], version);
		buf_printf(out, "%s%s%s%s", separator, programs[i], version[0] == '\0' ? "" : " ",
			   version);
		separator = ", ";
	}
	if (separator[0] == ',')
		buf_puts(out, " and the usual command line tools; command -v NAME tells. ");
}

static void put_modules(struct buf *out, const char *usr)
{
	char version[VERSION_MAX];
	const char *separator = "Python modules beyond the standard library: ";
	get_version(usr, "python3", version);
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		if (!has_module(usr, version, modules[i]))
			continue;
		buf_printf(out, "%s%s", separator, modules[i]);
		separator = ", ";
	}
	if (separator[0] == ',')
		buf_putc(out, '.');
}

void instructions_installed(struct buf *out, const char *usr)
{
	put_programs(out, usr);
	put_modules(out, usr);
}

/* --- the parts of the text ----------------------------------------------------------------- */

static void put_size(struct buf *out, int64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;
	while (unit + 1 < ARRAY_LEN(units) && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	buf_printf(out, "%lld %s", (long long)bytes, units[unit]);
}

static void put_sandboxes(struct buf *out, const struct conf *conf)
{
	buf_printf(
		out,
		"A sandbox is an isolated Linux machine with a directory /workspace of its own. "
		"Name it in each call (sandbox: \"work\"); exec, write_text and upload_file make "
		"a missing one, and say so with sandbox_created. Keep using one name for one "
		"piece of work. Left unused, a sandbox with a name is stopped after %lld s (its "
		"files stay, the next use starts it) and removed with its files after %lld s; one "
		"from create_sandbox without a name ends with its files %lld s after its last use. "
		"At most %lld sandboxes at a time.\n\n",
		(long long)conf->idle_stop, (long long)conf->idle_remove,
		(long long)conf->sandbox_ttl, (long long)conf->max_sandboxes);
}

static void put_workflow(struct buf *out)
{
	buf_puts(out,
		 "Usual way: 1. upload_file, when the person has a file to process. 2. write_text "
		 "for the script. 3. exec to run it, or run_background when it takes long. 4. "
		 "read_text for what you want to read, download_file for what the person wants to "
		 "have.\n\n");
}

/* Every plot comes back by itself, which is what models do not expect. */
static void put_python(struct buf *out, const struct conf *conf)
{
	buf_printf(
		out,
		"Python: for calculations, tables and plots execute_python is shorter than a "
		"script: it returns the value of the last line, figures as images, and files with "
		"links, without savefig or download_file. Variables last only with session_id, "
		"until %lld s pass without a call. At most %d s; longer work goes by "
		"run_background.\n\n",
		(long long)conf->python_idle, PYTHON_TIMEOUT_MAX_MS / 1000);
}

static void put_time(struct buf *out, const struct conf *conf)
{
	buf_printf(
		out,
		"Time: exec is for seconds. It waits %lld s at most; a command that takes longer "
		"goes on in the background (status running, with a job_id) until its timeout: "
		"%lld s unless you give another, at most %d. Long work (downloads, builds, "
		"training): run_background, then get_job again and again with its job_id. "
		"Each get_job waits by itself for the end, so poll steadily without sleeping in "
		"between, until status is finished; no output for a while is no reason to start "
		"anew. stop_job ends a job, list_jobs finds a lost job_id. A socket timeout, "
		"\"connection closed\" or lost answer says nothing about the command: it probably "
		"runs. Look with list_jobs and list_files before you repeat anything; a start with "
		"the same request_id never runs twice. Each exec is a new shell: cd and variables "
		"do not last, files do.\n\n",
		(long long)conf->exec_wait, (long long)conf->exec_timeout, EXEC_TIMEOUT_MAX);
}

static void put_files(struct buf *out, const struct conf *conf)
{
	buf_puts(out,
		 "Files: the file tools see /workspace only, the directory in which exec starts; "
		 "\"a/b.txt\" and \"/workspace/a/b.txt\" are the same, and the resource "
		 "spoolbox://work/a/b.txt is that file in sandbox work. /tmp is private to the "
		 "sandbox, holds ");
	put_size(out, conf->tmp_size);
	buf_puts(out, " in memory, and is lost when the sandbox stops. The rest of the system is "
		      "read-only. Text up to 1 MiB goes with write_text. Larger or binary files "
		      "travel by link, never as text through you: upload_file gives a link to "
		      "send one to, download_file one to fetch it from. A link works once, for ");
	buf_printf(out, "%lld s unless ttl_seconds says otherwise; ", (long long)conf->url_ttl);
	buf_puts(out, "uploads may have ");
	put_size(out, conf->max_upload);
	buf_puts(out,
		 ". Chinese file names from Windows archives: unpack with unzip -O GBK, or with "
		 "Python's zipfile and metadata_encoding=\"gbk\".\n\n");
}

static void put_network(struct buf *out, const struct conf *conf)
{
	buf_puts(out,
		 conf->network == CONF_NETWORK_NONE
			 ? "Network: none, not even between programs in the sandbox. "
			 : "Network: loopback only; programs in one sandbox reach each other at "
			   "127.0.0.1. ");
	buf_puts(out, "There is no internet: pip install, npm install, apt, git clone and curl of "
		      "outside addresses fail. Use what is installed, or have files uploaded.\n\n");
}

static void put_limits(struct buf *out, const struct conf *conf)
{
	buf_puts(out, "Limits: ");
	put_size(out, conf->mem_limit);
	buf_printf(out, " of memory per process, %lld processes, files up to ",
		   (long long)conf->pids_limit);
	put_size(out, conf->file_size);
	buf_puts(out, ". exec returns ");
	put_size(out, conf->stdout_max);
	buf_puts(out, " of stdout and ");
	put_size(out, conf->stderr_max);
	buf_puts(out, " of stderr (start and end of longer output), read_text ");
	put_size(out, conf->read_text_max);
	buf_puts(out, " per call.\n\n");
}

char *instructions_make(void *app)
{
	const struct conf *conf = ((const struct app *)app)->conf;
	AUTO_BUF out = BUF_INIT;
	put_sandboxes(&out, conf);
	put_workflow(&out);
	put_python(&out, conf);
	put_time(&out, conf);
	put_files(&out, conf);
	put_network(&out, conf);
	put_limits(&out, conf);
	instructions_installed(&out, "/usr");
	return buf_take(&out);
}
