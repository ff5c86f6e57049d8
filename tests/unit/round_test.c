/* Forms, questions, and the state that goes to the client and comes back. */
#include "mcp/round.h"

#include <sodium.h>

#include "base/text.h"
#include "mcp/form.h"
#include "unit.h"

/* --- forms -------------------------------------------------------------------------------- */

#define FORM \
	"{\"type\":\"object\",\"properties\":{" \
	"\"name\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":4}," \
	"\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":150}," \
	"\"score\":{\"type\":\"number\",\"maximum\":1.5}," \
	"\"ok\":{\"type\":\"boolean\",\"default\":true}," \
	"\"one\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"],\"enumNames\":[\"A\",\"B\"]}," \
	"\"titled\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"x\",\"title\":\"X\"}," \
	"{\"const\":\"y\",\"title\":\"Y\"}]}," \
	"\"many\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":2," \
	"\"items\":{\"type\":\"string\",\"enum\":[\"p\",\"q\",\"r\"]}}," \
	"\"titles\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"k\",\"title\":\"K\"}," \
	"{\"const\":\"l\",\"title\":\"L\"}]}}," \
	"\"odd\":{\"type\":\"null\"}},\"required\":[\"name\"]}"

TEST(a_form_takes_what_its_schema_allows_and_nothing_else)
{
	static const struct {
		const char *content;
		bool ok;
	} cases[] = {
		{"{\"name\":\"Ann\"}", true},
		{"{\"name\":\"\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F\"}", true}, /* four letters */
		{"{\"name\":\"Ann\",\"unknown\":[1]}", true},
		{"{\"name\":\"Ann\",\"age\":0,\"score\":1.5,\"ok\":false,\"one\":\"b\","
		 "\"titled\":\"x\",\"many\":[\"p\",\"r\"],\"titles\":[\"k\",\"l\"]}",
		 true},
		{"{\"name\":\"Ann\",\"age\":7.0,\"titles\":[]}", true},
		{"{}", false},
		{"[]", false},
		{"\"Ann\"", false},
		{"{\"name\":null}", false},
		{"{\"name\":\"A\"}", false},
		{"{\"name\":\"Annie\"}", false},
		{"{\"name\":7}", false},
		{"{\"name\":\"Ann\",\"age\":-1}", false},
		{"{\"name\":\"Ann\",\"age\":151}", false},
		{"{\"name\":\"Ann\",\"age\":1.5}", false},
		{"{\"name\":\"Ann\",\"age\":\"1\"}", false},
		{"{\"name\":\"Ann\",\"score\":1.6}", false},
		{"{\"name\":\"Ann\",\"ok\":\"true\"}", false},
		{"{\"name\":\"Ann\",\"ok\":null}", false},
		{"{\"name\":\"Ann\",\"one\":\"A\"}", false},
		{"{\"name\":\"Ann\",\"titled\":\"X\"}", false},
		{"{\"name\":\"Ann\",\"many\":[]}", false},
		{"{\"name\":\"Ann\",\"many\":[\"p\",\"q\",\"r\"]}", false},
		{"{\"name\":\"Ann\",\"many\":[\"z\"]}", false},
		{"{\"name\":\"Ann\",\"many\":\"p\"}", false},
		{"{\"name\":\"Ann\",\"titles\":[\"K\"]}", false},
		{"{\"name\":\"Ann\",\"titles\":[[\"k\"]]}", false},
		{"{\"name\":\"Ann\",\"odd\":1}", false},
	};
	AUTO_JSON *schema = json_literal(FORM);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *content = json_literal(cases[i].content);
		ck_assert_msg(form_accepts(schema, content) == cases[i].ok, "%s", cases[i].content);
	}
}
TEST_END

/* --- one round after the other ------------------------------------------------------------ */

#define NAME_FORM \
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}," \
	"\"required\":[\"name\"]}"

static struct sign_key keys[2];

static struct round_binding bind(struct json_object *params)
{
	return (struct round_binding){keys, ARRAY_LEN(keys), "ann", "tools/call", params};
}

static struct json_object *request(const char *capabilities, const char *more)
{
	AUTO_BUF text = BUF_INIT;
	buf_printf(&text,
		   "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":{\"c\":2,\"d\":3}},"
		   "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":%s}%s}",
		   capabilities, more);
	return json_literal(text.data);
}

#define ALL "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}"

TEST(what_a_client_declares_is_what_it_is_asked)
{
	static const struct {
		const char *capabilities;
		unsigned can_ask;
	} cases[] = {
		{"{}", 0},
		{ALL, ROUND_ALL},
		{"{\"elicitation\":{}}", ROUND_ELICIT},
		{"{\"elicitation\":{\"form\":{}}}", ROUND_ELICIT},
		{"{\"elicitation\":{\"form\":{},\"url\":{}}}", ROUND_ELICIT},
		{"{\"elicitation\":{\"url\":{}}}", 0},
		{"{\"sampling\":{\"tools\":{}}}", ROUND_SAMPLE},
		{"{\"roots\":{\"listChanged\":true}}", ROUND_ROOTS},
		{"{\"sampling\":true,\"roots\":[]}", 0},
		{"{\"experimental\":{\"sampling\":{}}}", 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_RPC_ERROR error = RPC_ERROR_INIT;
		AUTO_JSON *params = request(cases[i].capabilities, "");
		const struct round_binding binding = bind(params);
		struct round round = {0};
		ck_assert(round_read(&round, &binding, &error));
		ck_assert_msg(round.can_ask == cases[i].can_ask, "%s", cases[i].capabilities);
		round_finish(&round);
	}
}
TEST_END

TEST(nothing_is_asked_of_who_does_not_declare_it)
{
	struct round round = {.can_ask = ROUND_ELICIT};
	struct json_object *answer = NULL;
	ck_assert_int_eq(round_sample(&round, "s", json_object_new_object(), &answer),
			 ROUND_CANNOT);
	ck_assert_int_eq(round_roots(&round, "r", &answer), ROUND_CANNOT);
	ck_assert(!round_is_open(&round));
	ck_assert(round_require(&round, ROUND_ELICIT));
	ck_assert_int_eq((int)round.missing, 0);
	ck_assert(!round_require(&round, ROUND_SAMPLE));
	ck_assert(!round_require(&round, ROUND_ROOTS));
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	ck_assert(!round_refuse(&round, &error));
	ck_assert_int_eq(error.status, 400);
	ck_assert_int_eq(error.code, RPC_CAPABILITY);
	ck_assert_str_eq(json_text(error.data, NULL),
			 "{\"requiredCapabilities\":{\"sampling\":{},\"roots\":{}}}");
	round_finish(&round);
}
TEST_END

/* Asks for a name, then for a sample and the roots; remembers a number in between. */
static enum round_answer handler(struct round *round)
{
	struct json_object *form, *sample, *roots;
	enum round_answer name = round_elicit(round, "name", "Who?", NAME_FORM, &form);
	if (name == ROUND_ASKED)
		return name;
	ck_assert_int_eq(name, ROUND_ACCEPTED);
	ck_assert_str_eq(json_get_str(form, "name"), "Bob");
	round->keep = json_literal("{\"step\":2}");
	enum round_answer a =
		round_sample(round, "sample", json_literal("{\"maxTokens\":9}"), &sample);
	enum round_answer b = round_roots(round, "roots", &roots);
	if (a == ROUND_ASKED || b == ROUND_ASKED)
		return ROUND_ASKED;
	ck_assert_int_eq(json_get_int(round->kept, "step", 0), 2);
	ck_assert_str_eq(json_get_str(json_get(sample, "content"), "text"), "Paris");
	ck_assert_uint_eq(json_object_array_length(roots), 1);
	return ROUND_ACCEPTED;
}

/* Plays one round; returns the result that asks, or NULL when the handler is through. */
static struct json_object *play(const char *more)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	AUTO_JSON *params = request(ALL, more);
	const struct round_binding binding = bind(params);
	struct round round = {0};
	ck_assert_msg(round_read(&round, &binding, &error), "%s", error.message);
	enum round_answer answer = handler(&round);
	ck_assert_int_eq(round_is_open(&round), answer == ROUND_ASKED);
	struct json_object *result = NULL;
	if (answer == ROUND_ASKED) {
		result = json_object_new_object();
		round_write(&round, &binding, result);
	}
	round_finish(&round);
	return result;
}

static struct json_object *play_on(struct json_object *result, const char *responses)
{
	AUTO_BUF more = BUF_INIT;
	buf_printf(&more, ",\"inputResponses\":%s", responses);
	if (json_has(result, "requestState"))
		buf_printf(&more, ",\"requestState\":\"%s\"", json_get_str(result, "requestState"));
	return play(more.data);
}

#define ACCEPT_BOB "{\"name\":{\"action\":\"accept\",\"content\":{\"name\":\"Bob\"}}}"
#define SAMPLE \
	"\"sample\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":{\"type\":\"text\"," \
	"\"text\":\"Paris\"}}"
#define ROOTS "\"roots\":{\"roots\":[{\"uri\":\"file:///a\"}]}"

TEST(an_answer_that_was_used_need_not_be_given_again)
{
	AUTO_JSON *first = play("");
	ck_assert_str_eq(json_text(first, NULL),
			 "{\"inputRequests\":{\"name\":{\"method\":\"elicitation/create\","
			 "\"params\":{\"message\":\"Who?\",\"requestedSchema\":" NAME_FORM "}}}}");
	AUTO_JSON *second = play_on(first, ACCEPT_BOB);
	struct json_object *asked = json_get(second, "inputRequests");
	ck_assert_int_eq(json_object_object_length(asked), 2);
	ck_assert_str_eq(json_text(json_get(asked, "sample"), NULL),
			 "{\"method\":\"sampling/createMessage\",\"params\":{\"maxTokens\":9}}");
	ck_assert_str_eq(json_text(json_get(asked, "roots"), NULL), "{\"method\":\"roots/list\"}");
	ck_assert(json_has(second, "requestState"));
	/* one of two is answered: only the other is asked again */
	AUTO_JSON *third = play_on(second, "{" SAMPLE ",\"unknown\":{}}");
	ck_assert_int_eq(json_object_object_length(json_get(third, "inputRequests")), 1);
	ck_assert(json_has(json_get(third, "inputRequests"), "roots"));
	ck_assert_str_ne(json_get_str(second, "requestState"), json_get_str(third, "requestState"));
	ck_assert_ptr_null(play_on(third, "{" ROOTS "}"));
	ck_assert_ptr_null(play_on(second, "{" SAMPLE "," ROOTS "}"));
}
TEST_END

TEST(an_ill_formed_answer_is_asked_again)
{
	static const char *const responses[] = {
		"{}",
		"{\"name\":null}",
		"{\"name\":\"Bob\"}",
		"{\"name\":{}}",
		"{\"name\":{\"content\":{\"name\":\"Bob\"}}}",
		"{\"name\":{\"action\":\"accept\"}}",
		"{\"name\":{\"action\":\"accept\",\"content\":{\"name\":7}}}",
		"{\"name\":{\"action\":\"yes\",\"content\":{\"name\":\"Bob\"}}}",
		"{\"wrong\":{\"action\":\"accept\",\"content\":{\"name\":\"Bob\"}}}",
	};
	for (size_t i = 0; i < ARRAY_LEN(responses); i++) {
		AUTO_JSON *first = play("");
		AUTO_JSON *again = play_on(first, responses[i]);
		ck_assert_msg(again != NULL && json_object_equal(first, again), "%s", responses[i]);
	}
	AUTO_JSON *first = play("");
	AUTO_JSON *second = play_on(first, ACCEPT_BOB);
	static const char *const others[] = {
		"{\"sample\":{\"role\":\"assistant\"},\"roots\":{\"roots\":{}}}",
		"{\"sample\":{\"content\":{}},\"roots\":{\"roots\":[{\"name\":\"a\"}]}}",
		"{\"sample\":[],\"roots\":[]}",
	};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		AUTO_JSON *again = play_on(second, others[i]);
		ck_assert_int_eq(json_object_object_length(json_get(again, "inputRequests")), 2);
	}
}
TEST_END

TEST(who_declines_is_not_asked_again)
{
	static const char *const actions[] = {"decline", "cancel"};
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		struct round round = {.can_ask = ROUND_ALL};
		struct json_object *answer = NULL;
		AUTO_BUF text = BUF_INIT;
		buf_printf(&text, "{\"action\":\"%s\"}", actions[i]);
		round_add_answer(&round, "k", json_literal(text.data));
		ck_assert_int_eq(round_elicit(&round, "k", "?", NAME_FORM, &answer),
				 ROUND_DECLINED);
		ck_assert_int_eq(round_sample(&round, "k", json_object_new_object(), &answer),
				 ROUND_DECLINED);
		ck_assert_int_eq(round_roots(&round, "k", &answer), ROUND_DECLINED);
		ck_assert(!round_is_open(&round));
		ck_assert_ptr_null(answer);
		round_finish(&round);
	}
}
TEST_END

/* --- states ------------------------------------------------------------------------------- */

static bool reads(const struct round_binding *binding)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	struct round round = {0};
	bool ok = round_read(&round, binding, &error);
	if (!ok) {
		ck_assert_int_eq(error.code, RPC_PARAMS);
		ck_assert_int_eq(error.status, 200);
		ck_assert_ptr_null(round.kept);
	} else {
		ck_assert_int_eq(json_get_int(round.kept, "n", 0), 5);
	}
	round_finish(&round);
	return ok;
}

static struct json_object *new_state(const struct round_binding *binding)
{
	struct json_object *answer = NULL;
	struct round round = {.can_ask = ROUND_ALL, .keep = json_literal("{\"n\":5}")};
	round_roots(&round, "r", &answer);
	AUTO_JSON *result = json_object_new_object();
	round_write(&round, binding, result);
	round_finish(&round);
	return json_object_get(json_get(result, "requestState"));
}

/* checklist 74 */
TEST(a_state_opens_for_the_same_call_of_the_same_principal_only)
{
	static const struct {
		const char *principal, *method, *params;
		bool ok;
	} cases[] = {
		{"ann", "tools/call", "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2}}", true},
		{"ann", "tools/call", "{\"arguments\":{\"b\":2,\"a\":1},\"name\":\"t\",\"x\":1}",
		 true},
		{"bob", "tools/call", "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2}}", false},
		{"ann", "prompts/get", "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2}}", false},
		{"ann", "tools/call", "{\"name\":\"u\",\"arguments\":{\"a\":1,\"b\":2}}", false},
		{"ann", "tools/call", "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":3}}", false},
		{"ann", "tools/call", "{\"name\":\"t\",\"arguments\":{\"a\":1}}", false},
		{"ann", "tools/call", "{\"name\":\"t\"}", false},
		{"ann", "tools/call", "{\"uri\":\"t\",\"arguments\":{\"a\":1,\"b\":2}}", false},
		/* a read has its URI and nothing else to be known by */
		{"ann", "tools/call",
		 "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"uri\":\"x:y\"}", false},
	};
	AUTO_JSON *made_for = json_literal(cases[0].params);
	const struct round_binding binding = bind(made_for);
	AUTO_JSON *state = new_state(&binding);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *params = json_literal(cases[i].params);
		json_add(params, "requestState", json_object_get(state));
		const struct round_binding other = {keys, ARRAY_LEN(keys), cases[i].principal,
						    cases[i].method, params};
		ck_assert_msg(reads(&other) == cases[i].ok, "%s", cases[i].params);
	}
}
TEST_END

TEST(no_changed_state_opens)
{
	AUTO_JSON *params = json_literal("{\"name\":\"t\"}");
	const struct round_binding binding = bind(params);
	AUTO_JSON *state = new_state(&binding);
	size_t len = json_str_len(state);
	for (size_t i = 0; i < len; i++) {
		AUTO_FREE char *text = xstrdup(json_str(state));
		text[i] = text[i] == 'A' ? 'B' : 'A';
		json_add_str(params, "requestState", text);
		ck_assert_msg(!reads(&binding), "at %zu", i);
		text[i] = '\0';
		json_add_str(params, "requestState", text);
		ck_assert(!reads(&binding));
	}
	json_add_str(params, "requestState", "x");
	ck_assert(!reads(&binding));
	json_add_int(params, "requestState", 5);
	ck_assert(!reads(&binding));
	json_object_object_add(params, "requestState", NULL);
	ck_assert(!reads(&binding));
}
TEST_END

/* checklist 76 */
TEST(a_state_outlives_the_rotation_of_its_key_but_not_its_time)
{
	AUTO_JSON *params = json_literal("{\"name\":\"t\"}");
	struct round_binding binding = bind(params);
	AUTO_JSON *state = new_state(&binding);
	json_add(params, "requestState", json_object_get(state));
	const struct sign_key rotated[] = {keys[1], keys[0]};
	binding.keys = rotated;
	ck_assert(reads(&binding));
	binding.key_count = 1;
	ck_assert(!reads(&binding));
	/* one that expired: sealed as round.c does it, ten minutes ago */
	AUTO_BUF old = BUF_INIT, plain = BUF_INIT;
	struct err err = ERR_INIT;
	unsigned char digest[crypto_generichash_BYTES];
	static const char bound[] = "{\"arguments\":{},\"method\":\"tools/call\",\"name\":\"t\","
				    "\"principal\":\"ann\"}";
	crypto_generichash(digest, sizeof digest, (const unsigned char *)bound, strlen(bound), NULL,
			   0);
	ck_ok(sign_open(keys, 1, json_str(state), digest, sizeof digest, &plain, &err), err);
	AUTO_JSON *opened = json_parse(plain.data, plain.len, &err);
	ck_assert_int_gt(json_get_int(opened, "expires_at", 0), 0);
	binding = bind(params);
	for (int64_t late = -1; late <= 1; late += 2) {
		size_t len;
		json_add_int(opened, "expires_at",
			     json_get_int(opened, "expires_at", 0) - (late + 1) * ROUND_STATE_MS);
		const char *text = json_text(opened, &len);
		buf_clear(&old);
		sign_seal(&keys[0], text, len, digest, sizeof digest, &old);
		json_add_str(params, "requestState", old.data);
		ck_assert_int_eq(reads(&binding), late < 0);
	}
}
TEST_END

/* checklist 75 */
TEST(responses_must_be_an_object)
{
	static const char *const responses[] = {"null", "[]", "\"x\"", "7"};
	for (size_t i = 0; i < ARRAY_LEN(responses); i++) {
		AUTO_RPC_ERROR error = RPC_ERROR_INIT;
		AUTO_BUF more = BUF_INIT;
		buf_printf(&more, ",\"inputResponses\":%s", responses[i]);
		AUTO_JSON *params = request(ALL, more.data);
		const struct round_binding binding = bind(params);
		struct round round = {0};
		ck_assert(!round_read(&round, &binding, &error));
		ck_assert_int_eq(error.code, RPC_PARAMS);
		round_finish(&round);
	}
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_form_takes_what_its_schema_allows_and_nothing_else,
		what_a_client_declares_is_what_it_is_asked,
		nothing_is_asked_of_who_does_not_declare_it,
		an_answer_that_was_used_need_not_be_given_again,
		an_ill_formed_answer_is_asked_again,
		who_declines_is_not_asked_again,
		a_state_opens_for_the_same_call_of_the_same_principal_only,
		no_changed_state_opens,
		a_state_outlives_the_rotation_of_its_key_but_not_its_time,
		responses_must_be_an_object,
	};
	if (sodium_init() < 0)
		return 1;
	sign_key_from_text(&keys[0], "new");
	sign_key_from_text(&keys[1], "old");
	return unit_run("round", unit_tests, ARRAY_LEN(unit_tests));
}
