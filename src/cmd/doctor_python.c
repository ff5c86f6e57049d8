/*
 * Python as a sandbox sees it. A script in a sandbox says in lines of "word value" what there is;
 * native modules are imported by a child of its own, so that one that needs an instruction which
 * the processor lacks is named. Nothing here is a reason to fail: the other tools need no Python.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/doctor.h"

/* What plots and tables need, and what else is worth naming; as they are imported. */
#define USUAL   "numpy pandas matplotlib PIL openpyxl"
#define FURTHER "scipy sklearn seaborn sympy networkx lxml bs4 requests pypdf docx"
#define NATIVE  "numpy pandas matplotlib PIL scipy sklearn lxml cv2"

/* Fonts that have Chinese, Japanese and Korean glyphs, by the beginnings of their files' names. */
#define FONTS "('wqy-', 'NotoSansCJK', 'NotoSerifCJK', 'SourceHanSans', 'SourceHanSerif')"

const char doctor_python_command[] =
	"p=/usr/bin/python3\n"
	"[ -x $p ] || p=$(command -v python3) || exit 0\n"
	"echo python $p\n"
	"exec $p - <<'END'\n"
	"import sys\n"
	"print('version', '.'.join(map(str, sys.version_info[:3])), flush=True)\n"
	"if sys.version_info < (3, 8):\n"
	"    raise SystemExit\n"
	"import os\n"
	"from importlib.util import find_spec\n"
	"for word, names in ('usual', '" USUAL "'), ('further', '" FURTHER "'):\n"
	"    there = [name for name in names.split() if find_spec(name)]\n"
	"    print(word, *there)\n"
	"    print('no-' + word, *sorted(set(names.split()) - set(there)), flush=True)\n"
	"files = [name for _, _, names in os.walk('/usr/share/fonts') for name in names]\n"
	"files += [name for _, _, names in os.walk('/usr/local/share/fonts') for name in names]\n"
	"print('fonts', *sorted(name for name in files if name.startswith(" FONTS
	"))[:1], flush=True)\n"
	"native = [name for name in '" NATIVE "'.split() if find_spec(name)]\n"
	"while native:\n"
	"    here, there = os.pipe()\n"
	"    pid = os.fork()\n"
	"    if pid == 0:\n"
	"        for name in native:\n"
	"            os.write(there, name.encode() + b' ')\n"
	"            try:\n"
	"                __import__(name)\n"
	"            except BaseException:\n"
	"                os.kill(os.getpid(), 1)\n"
	"        os._exit(0)\n"
	"    os.close(there)\n"
	"    tried = b''.join(iter(lambda: os.read(here, 4096), b'')).decode().split()\n"
	"    number = os.waitpid(pid, 0)[1] & 127\n"
	"    if number:\n"
	"        print({1: 'broken', 4: 'illegal'}.get(number, 'crashed'), tried[-1], flush=True)\n"
	"    native = native[len(tried):] if number else []\n"
	"END\n";

/* What stands behind a word at the beginning of a line; NULL: there is no such line. *from is where
 * to look, and is moved behind it. */
static char *line_of(const char **from, const char *word)
{
	size_t len = strlen(word);
	for (const char *line = *from; *line != '\0';) {
		const char *end = strchrnul(line, '\n');
		*from = *end == '\0' ? end : end + 1;
		if (strncmp(line, word, len) == 0 && (line[len] == ' ' || line + len == end)) {
			const char *value = line + len + (line[len] == ' ');
			return xstrndup(value, (size_t)(end - value));
		}
		line = *from;
	}
	return NULL;
}

static char *value_of(const struct buf *answer, const char *word)
{
	const char *from = buf_str(answer);
	return line_of(&from, word);
}

static void report_modules(struct doctor *doctor, const struct buf *answer)
{
	AUTO_FREE char *usual = value_of(answer, "usual");
	AUTO_FREE char *further = value_of(answer, "further");
	AUTO_FREE char *missing = value_of(answer, "no-usual");
	AUTO_FREE char *others = value_of(answer, "no-further");
	if (missing == NULL || *missing != '\0')
		doctor_report(doctor, WARN,
			      "python modules: without %s; tables and plots need them. apt-get "
			      "install python3-numpy python3-pandas python3-matplotlib python3-pil "
			      "python3-openpyxl",
			      missing == NULL ? USUAL : missing);
	else
		doctor_report(doctor, OK, "python modules: %s%s%s", usual,
			      further != NULL && *further != '\0' ? " " : "",
			      further == NULL ? "" : further);
	if (others != NULL && *others != '\0')
		doctor_report(doctor, NOTE,
			      "python modules: not installed, and only needed by code that imports "
			      "them: %s",
			      others);
}

static void report_faults(struct doctor *doctor, const struct buf *answer)
{
	static const struct {
		const char *word, *text;
	} faults[] = {
		{"illegal", "needs an instruction that this machine's processor lacks, and ends "
			    "with SIGILL. Replace it by Debian's package, which needs none"},
		{"crashed", "crashes when it is imported. Reinstall it"},
		{"broken", "is there, but cannot be imported. Reinstall it"},
	};
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		const char *from = buf_str(answer);
		char *name;
		while ((name = line_of(&from, faults[i].word)) != NULL) {
			doctor_report(doctor, WARN, "python module %s: %s", name, faults[i].text);
			free(name);
		}
	}
}

static void report_fonts(struct doctor *doctor, const struct buf *answer)
{
	AUTO_FREE char *font = value_of(answer, "fonts");
	if (font != NULL && *font != '\0')
		doctor_report(doctor, OK, "fonts: %s has Chinese, Japanese and Korean", font);
	else
		doctor_report(
			doctor, WARN,
			"fonts: none with Chinese, Japanese and Korean was found; such labels "
			"in plots show empty boxes. apt-get install fonts-wqy-zenhei");
}

/* Debian builds for the oldest processors of each architecture; wheels from elsewhere often do
 * not. */
static void report_processor(struct doctor *doctor)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_cpu_init();
	bool has_sse = __builtin_cpu_supports("sse4.2") != 0;
	bool has_avx = __builtin_cpu_supports("avx") != 0;
	if (has_sse && has_avx)
		doctor_report(doctor, OK, "processor: has sse4.2 and avx");
	else
		doctor_report(doctor, NOTE,
			      "processor: has no %s. Debian's packages do without; Python wheels "
			      "from elsewhere may end with SIGILL",
			      has_sse   ? "avx"
			      : has_avx ? "sse4.2"
					: "sse4.2 and avx");
#else
	(void)doctor;
#endif
}

void doctor_python(struct doctor *doctor, const struct buf *answer)
{
	AUTO_FREE char *path = value_of(answer, "python");
	AUTO_FREE char *version = value_of(answer, "version");
	int major = 0, minor = 0;
	report_processor(doctor);
	/* Two digits do not overflow. NOLINTNEXTLINE(cert-err34-c) */
	if (version != NULL && sscanf(version, "%2d.%2d", &major, &minor) != 2)
		major = 0;
	if (path == NULL || version == NULL)
		doctor_report(doctor, WARN,
			      "python: sandboxes see no python3; only execute_python needs it. "
			      "apt-get install python3");
	else if (major < 3 || (major == 3 && minor < 8))
		doctor_report(doctor, WARN, "python: %s is %s; execute_python needs 3.8 or newer",
			      path, version);
	else
		doctor_report(doctor, OK, "python: sandboxes have %s, version %s", path, version);
	if (major < 3 || (major == 3 && minor < 8))
		return;
	report_modules(doctor, answer);
	report_faults(doctor, answer);
	report_fonts(doctor, answer);
}
