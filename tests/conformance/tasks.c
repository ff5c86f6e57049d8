/*
 * A task's status follows from its row and the time, so there is nothing that has to run for it,
 * and whichever worker is asked says the same. Cancelling is a compare-and-set against its end.
 */
#include "tasks.h"

#include <string.h>

#include "base/clock.h"
#include "fixture.h"

static bool is_open(const struct task_row *row, const struct job *job)
{
	for (size_t i = 0; i < job->question_count; i++) {
		if (!job_is_answered(row, &job->questions[i]))
			return true;
	}
	return false;
}

/* What is still to be answered: key -> request. */
static struct json_object *open_requests(const struct task_row *row, const struct job *job)
{
	struct json_object *requests = json_object_new_object();
	for (size_t i = 0; i < job->question_count; i++) {
		const struct question *question = &job->questions[i];
		if (job_is_answered(row, question))
			continue;
		struct json_object *params = json_object_new_object();
		json_add_str(params, "mode", "form");
		json_add_str(params, "message", question->message);
		json_add(params, "requestedSchema", json_literal(question->schema));
		struct json_object *request = json_object_new_object();
		json_add_str(request, "method", "elicitation/create");
		json_add(request, "params", params);
		json_add(requests, question->key, request);
	}
	return requests;
}

static enum tool_task_status status_of(const struct task_row *row, int64_t now)
{
	if (row->cancelled_at != 0)
		return TOOL_TASK_CANCELLED;
	if (row->due_at == 0)
		return TOOL_TASK_INPUT;
	return now < row->due_at ? TOOL_TASK_WORKING : TOOL_TASK_COMPLETED;
}

static void describe(const struct task_row *row, struct tool_task *task)
{
	*task = (struct tool_task){
		.status = status_of(row, clock_wall_ms()),
		.created_at = row->created_at,
		.updated_at = row->updated_at,
		.ttl_ms = TASK_TTL_MS,
	};
	memcpy(task->id, row->id, sizeof(task->id));
	if (task->status == TOOL_TASK_COMPLETED && row->due_at > row->updated_at)
		task->updated_at = row->due_at;
}

bool task_start(struct tool_call *call, const char *job, struct json_object *arguments, int64_t ms,
		struct err *err)
{
	struct fixture *fixture = call->app;
	int64_t now = clock_wall_ms();
	/* What is borrowed here is only read: the row is not finished. */
	struct task_row row = {
		.principal = (char *)call->principal,
		.job = (char *)job,
		.arguments = arguments,
		.created_at = now,
		.updated_at = now,
	};
	if (!is_open(&row, job_find(job)))
		row.due_at = now + ms;
	id_make(row.id);
	if (!task_row_insert(fixture->db, &row, err))
		return false;
	describe(&row, &call->task);
	return true;
}

static bool unknown(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no such task");
}

static bool find(struct tool_call *call, const char *id, struct task_row *row, struct err *err)
{
	struct fixture *fixture = call->app;
	int found = task_row_get(fixture->db, call->principal, id, row, err);
	return found == 0 ? unknown(err) : found == 1;
}

static bool get(struct tool_call *call, const char *id, struct tool_task *task, struct err *err)
{
	AUTO_TASK_ROW row = {.due_at = 0};
	if (!find(call, id, &row, err))
		return false;
	const struct job *job = job_find(row.job);
	describe(&row, task);
	if (task->status == TOOL_TASK_INPUT)
		task->requests = open_requests(&row, job);
	else if (task->status == TOOL_TASK_COMPLETED)
		job->end(&row, call, task);
	return true;
}

static bool cancel(struct tool_call *call, const char *id, struct err *err)
{
	struct fixture *fixture = call->app;
	AUTO_TX tx = TX_INIT;
	if (!db_begin(fixture->db, &tx, err))
		return false;
	int changed = task_row_cancel(fixture->db, call->principal, id, clock_wall_ms(), err);
	if (changed == 1)
		return event_add(fixture->db, EVENT_TASK, id, err) && db_commit(&tx, err);
	AUTO_TASK_ROW row = {.due_at = 0};
	return changed == 0 && find(call, id, &row, err);
}

/* Takes over what is an answer to an open question. */
static void take_answers(struct task_row *row, const struct job *job, struct json_object *answers)
{
	for (size_t i = 0; i < job->question_count; i++) {
		const struct question *question = &job->questions[i];
		struct json_object *answer = json_get(answers, question->key);
		if (!job_is_answered(row, question) && json_get_str(answer, "action") != NULL)
			json_add(row->answers, question->key, json_copy(answer));
	}
}

static bool update(struct tool_call *call, const char *id, struct json_object *answers,
		   struct err *err)
{
	struct fixture *fixture = call->app;
	AUTO_TX tx = TX_INIT;
	AUTO_TASK_ROW row = {.due_at = 0};
	if (!db_begin(fixture->db, &tx, err) || !find(call, id, &row, err))
		return false;
	const struct job *job = job_find(row.job);
	if (status_of(&row, clock_wall_ms()) != TOOL_TASK_INPUT)
		return true;
	take_answers(&row, job, answers);
	row.updated_at = clock_wall_ms();
	row.due_at = is_open(&row, job) ? 0 : row.updated_at;
	return task_row_answer(fixture->db, &row, err) >= 0 &&
	       event_add(fixture->db, EVENT_TASK, id, err) && db_commit(&tx, err);
}

const struct tool_tasks fixture_tasks = {.get = get, .cancel = cancel, .update = update};
