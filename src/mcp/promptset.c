/*
 * The prompts of the product: ways of working that a person starts by name and a model then
 * follows. Each is one text with {argument} where an argument goes; they name tools exactly, and
 * tests/unit/promptset_test.c holds them against the tools that exist.
 */
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/text.h"
#include "mcp/prompt.h"
#include "mcp/roster.h"

/* What stands for an argument that was left out. */
static const struct {
	const char *name, *fallback;
} slots[] = {
	{"task", ""},
	{"question", "what is in it, and what stands out"},
	{"file", "(the file's own name)"},
	{"sandbox", "work"},
};

/* The text of the slot that begins at p; *len is how long its mark is. NULL: there is none. */
static const char *slot_text(const struct prompt_call *call, const char *p, size_t *len)
{
	for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
		size_t name = strlen(slots[i].name);
		if (strncmp(p + 1, slots[i].name, name) != 0 || p[name + 1] != '}')
			continue;
		*len = name + 2;
		const char *given = prompt_argument(call, slots[i].name);
		return given == NULL || *given == '\0' ? slots[i].fallback : given;
	}
	return NULL;
}

static void fill(const struct prompt_call *call, const char *text, struct buf *out)
{
	for (const char *p = text; *p != '\0';) {
		size_t len = 0;
		const char *value = *p == '{' ? slot_text(call, p, &len) : NULL;
		if (value == NULL)
			buf_putc(out, *p++);
		else
			buf_puts(out, value);
		p += len;
	}
}

/* A name that no tool would take is told here, where the person sees it. */
static bool check_sandbox(const struct prompt_call *call, struct err *err)
{
	const char *name = prompt_argument(call, "sandbox");
	if (name == NULL || *name == '\0' || name_is_valid(name))
		return true;
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, name, strlen(name), NAME_MAX_LEN);
	err_set(err, ERR_INVALID, "\"%s\" cannot be the name of a sandbox", buf_str(&shown));
	return err_hint(
		err,
		"Give 1 to %d letters, digits, - and _, starting with a letter or digit, or "
		"leave it out.",
		NAME_MAX_LEN);
}

static bool say(struct prompt_call *call, const char *text, struct err *err)
{
	if (!check_sandbox(call, err))
		return false;
	AUTO_BUF out = BUF_INIT;
	fill(call, text, &out);
	prompt_add_text(call, "user", buf_str(&out));
	return true;
}

static bool complete(void *app, const char *principal, const char *argument, const char *value,
		     struct json_object *values, bool *more, struct err *err)
{
	*more = false;
	return strcmp(argument, "sandbox") != 0 ||
	       roster_complete(app, principal, value, values, more, err);
}

/* clang-format off */
#define SANDBOX_ARGUMENT \
	{"sandbox", "Sandbox", "Name of the sandbox to work in. Left out: work.", false}
/* clang-format on */

/* --- process_file -------------------------------------------------------------------------- */

static bool get_process_file(struct prompt_call *call, struct err *err)
{
	return say(
		call,
		"I have a file for you to process. What I want: {task}\n\n"
		"Work in sandbox {sandbox}, in this order:\n"
		"1. Get the file: call upload_file with dest {file}, give me the link and wait "
		"until I say that it is sent. Leave this out if list_files shows that it is there "
		"already.\n"
		"2. Look before you decide: list_files for its size, read_text for the beginning "
		"of a text, exec (file, head, a few lines of Python) for other formats.\n"
		"3. Write a script with write_text and run it with exec, or with run_background "
		"and get_job when it takes more than a minute. Leave the original as it is; put "
		"results into the directory out.\n"
		"4. Check what came out: open it, and compare counts and sizes with the input.\n"
		"5. Call download_file for the result (pack several files with exec first), give "
		"me the link, and say in a few sentences what you did and what looked odd.",
		err);
}

static const struct prompt_argument process_file_arguments[] = {
	{"task", "Task", "What is to be done with the file.", true},
	{"file", "File", "Path of the file in the sandbox, such as in/report.xlsx.", false},
	SANDBOX_ARGUMENT,
};

static const struct prompt process_file = {
	.name = "process_file",
	.title = "Process a file",
	.description = "Takes a file of yours from an upload link through a script to a download "
		       "link.",
	.arguments = process_file_arguments,
	.argument_count = ARRAY_LEN(process_file_arguments),
	.get = get_process_file,
	.complete = complete,
};

/* --- analyze_data -------------------------------------------------------------------------- */

static bool get_analyze_data(struct prompt_call *call, struct err *err)
{
	return say(
		call,
		"Analyze the data in {file}, in sandbox {sandbox}. My question: {question}\n\n"
		"1. If list_files does not show it, ask me to send it: upload_file gives the "
		"link.\n"
		"2. Learn its form first: format, encoding, columns, number of rows, empty and "
		"odd values. Tell me what you found before you go on if it changes the "
		"question.\n"
		"3. Work with execute_python in that sandbox: session_id new keeps the loaded "
		"data for the next step. Print numbers, not whole tables; charts come back as "
		"images, and files as links. What takes more than a minute is a script "
		"(write_text) for run_background. Nothing can be installed from the internet.\n"
		"4. Check the result in a second way, for instance by a total that must agree.\n"
		"5. Answer the question first, in one or two sentences with the numbers that "
		"matter, then say what they rest on. Give me the links of charts and tables that "
		"I may want to keep (download_file makes new ones).",
		err);
}

static const struct prompt_argument analyze_data_arguments[] = {
	{"file", "File", "Path of the data in the sandbox, such as data/sales.csv.", true},
	{"question", "Question", "What you want to know.", false},
	SANDBOX_ARGUMENT,
};

static const struct prompt analyze_data = {
	.name = "analyze_data",
	.title = "Analyze data",
	.description = "Answers a question about a data file with a script that can be checked.",
	.arguments = analyze_data_arguments,
	.argument_count = ARRAY_LEN(analyze_data_arguments),
	.get = get_analyze_data,
	.complete = complete,
};

/* --- long_task ----------------------------------------------------------------------------- */

static bool get_long_task(struct prompt_call *call, struct err *err)
{
	return say(
		call,
		"Do this as a background job in sandbox {sandbox}: {task}\n\n"
		"1. Write a script with write_text that prints a line at each step, writes what "
		"it has finished to files, and can be started again without doing the work "
		"twice. Try it with exec on a small part.\n"
		"2. Start it with run_background. Give a timeout that is enough, and a "
		"request_id of your own: if the answer is lost, the same call finds the same job. "
		"Tell me the job_id.\n"
		"3. Call get_job with the job_id until status is finished. Each call waits by "
		"itself, so call again without a pause. No output for a while is no reason to "
		"start anew. Tell me now and then how far it is.\n"
		"4. At the end look at state, exit_code and log_tail. If it failed, say why, "
		"correct the script and start it with a new request_id.\n"
		"5. Tell me the result: read_text for what you want to quote, download_file for "
		"what I want to have. stop_job ends a job that is of no use any more.",
		err);
}

static const struct prompt_argument long_task_arguments[] = {
	{"task", "Task", "What is to be done.", true},
	SANDBOX_ARGUMENT,
};

static const struct prompt long_task = {
	.name = "long_task",
	.title = "Run a long task",
	.description =
		"Starts work that takes minutes or hours in the background and follows it to "
		"its end.",
	.arguments = long_task_arguments,
	.argument_count = ARRAY_LEN(long_task_arguments),
	.get = get_long_task,
	.complete = complete,
};

/* --- clean_up ------------------------------------------------------------------------------ */

static bool get_clean_up(struct prompt_call *call, struct err *err)
{
	return say(
		call,
		"Help me to clean up my sandboxes.\n\n"
		"1. Call list_sandboxes, then list_jobs, and list_files for each sandbox.\n"
		"2. Show me a table: sandbox, last use, jobs that run, what files there are and "
		"how large they are. Say which sandboxes seem to be of no use any more, and "
		"why.\n"
		"3. Wait for my answer. Change nothing before.\n"
		"4. For what I want to keep, give links by download_file. Then end what I named: "
		"stop_job for jobs, destroy_sandbox for sandboxes. Set delete_files to true only "
		"where I said that the files can go.",
		err);
}

static const struct prompt clean_up = {
	.name = "clean_up",
	.title = "Clean up sandboxes",
	.description = "Shows what sandboxes, jobs and files there are, and removes what you name.",
	.get = get_clean_up,
};

/* --- the set ------------------------------------------------------------------------------- */

static const struct prompt *const all[] = {&process_file, &analyze_data, &long_task, &clean_up};

const struct prompt_list promptset = {all, ARRAY_LEN(all)};
