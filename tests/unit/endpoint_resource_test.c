/* Resources over the endpoint: lists in pages, contents, subscriptions of the handshake era. */
#include "endpoint_kit.h"

/* --- a set of seven, three on a page ------------------------------------------------------ */

#define COUNT 7
#define PAGE  3

static struct {
	enum err_code fails; /* the next call */
	int lists;
} set_state;

static bool refuse(struct err *err)
{
	switch (set_state.fails) {
	case ERR_IO:
		errno = EIO;
		return err_sys(err, "read /srv/secret");
	case ERR_TOO_LARGE:
		err_set(err, ERR_TOO_LARGE, "the file has 9 MiB, the limit is 8");
		return err_hint(err, "Use download_file.");
	default:
		return err_set(err, set_state.fails, "told so");
	}
}

static bool list_set(struct resource_call *call, const char *after, struct buf *next,
		     struct err *err)
{
	set_state.lists++;
	if (set_state.fails != ERR_NONE)
		return refuse(err);
	ck_assert_str_eq(call->principal, "tester");
	if (strcmp(after, "nonsense") == 0)
		return err_set(err, ERR_INVALID, "no position");
	int at = *after == '\0' ? 0 : atoi(after) + 1;
	for (int i = at; i < COUNT && i < at + PAGE; i++) {
		char uri[32];
		snprintf(uri, sizeof uri, "kit://r/%d", i);
		struct json_object *entry = json_object_new_object();
		json_add_str(entry, "uri", uri);
		json_add_str(entry, "name", uri + 6);
		json_add_str(entry, "title", "A title");
		json_push(call->result, entry);
	}
	if (at + PAGE < COUNT)
		buf_printf(next, "%d", at + PAGE - 1);
	return true;
}

static bool read_set(struct resource_call *call, const char *uri, struct err *err)
{
	if (set_state.fails != ERR_NONE)
		return refuse(err);
	if (strcmp(uri, "kit://r/ask") == 0) {
		struct json_object *roots;
		if (!round_require(&call->round, ROUND_ROOTS))
			return err_set(err, ERR_INTERNAL, "never seen");
		if (round_roots(&call->round, "where", &roots) == ROUND_ASKED)
			return true;
	} else if (strcmp(uri, "kit://r/1") != 0) {
		return err_set(err, ERR_NOT_FOUND, "no such resource");
	}
	struct json_object *contents = json_object_new_object();
	json_add_str(contents, "uri", uri);
	json_add_str(contents, "text", "hello");
	json_add(contents, "_meta", json_object_new_object());
	json_push(call->result, contents);
	return true;
}

static const struct resource_template templates[] = {
	{"kit://r/{number}", "number", "By number", "One of seven.", "text/plain"},
	{"kit://x/{a}/{b}", "pair", NULL, "A pair.", NULL},
};

static const struct resource_set full = {.templates = templates,
					 .template_count = ARRAY_LEN(templates),
					 .list = list_set,
					 .read = read_set,
					 .subscribe = true};
static const struct resource_set quiet = {.list = list_set, .read = read_set};

/* --- lists -------------------------------------------------------------------------------- */

static struct json_object *page(const char *cursor)
{
	AUTO_BUF params = BUF_INIT;
	if (cursor != NULL)
		buf_printf(&params, "\"cursor\":\"%s\",", cursor);
	return kit_ask_modern("resources/list", NULL, buf_str(&params), 200);
}

/* checklist 59 */
TEST(walking_all_pages_gives_each_resource_once)
{
	AUTO_FREE char *cursor = NULL;
	int seen = 0, pages = 0;
	do {
		AUTO_JSON *answer = page(cursor);
		struct json_object *list = kit_at(answer, "result.resources");
		for (size_t i = 0; i < json_object_array_length(list); i++, seen++) {
			char uri[32];
			snprintf(uri, sizeof uri, "kit://r/%d", seen);
			ck_assert_str_eq(json_get_str(json_object_array_get_idx(list, i), "uri"),
					 uri);
		}
		ck_assert_int_eq(json_get_int(json_get(answer, "result"), "ttlMs", -1), 0);
		ck_assert_str_eq(kit_text(answer, "result.cacheScope"), "private");
		free(cursor);
		const char *next = json_str(kit_at(answer, "result.nextCursor"));
		ck_assert(json_has(json_get(answer, "result"), "nextCursor") == (next != NULL));
		cursor = next == NULL ? NULL : xstrdup(next);
		pages++;
	} while (cursor != NULL);
	ck_assert_int_eq(seen, COUNT);
	ck_assert_int_eq(pages, 3);
}
TEST_END

TEST(a_cursor_that_is_not_of_this_list_and_caller_is_refused)
{
	AUTO_BUF foreign = BUF_INIT, other_list = BUF_INIT, odd = BUF_INIT;
	static const char his[] = "resources/list\0someone", mine[] = "resources/list\0tester";
	static const char of_other[] = "tools/list\0tester";
	sign_seal(&kit.state_keys[0], "2", 1, his, sizeof his - 1, &foreign);
	sign_seal(&kit.state_keys[0], "2", 1, of_other, sizeof of_other - 1, &other_list);
	sign_seal(&kit.state_keys[0], "nonsense", 8, mine, sizeof mine - 1, &odd);
	const char *const cursors[] = {"", "x", "Mg", foreign.data, other_list.data, odd.data};
	for (size_t i = 0; i < ARRAY_LEN(cursors); i++) {
		set_state.lists = 0;
		AUTO_JSON *answer = page(cursors[i]);
		ck_assert_int_eq(kit_code(answer), -32602);
		ck_assert_int_eq(set_state.lists, cursors[i] == odd.data);
	}
	AUTO_BUF good = BUF_INIT;
	sign_seal(&kit.state_keys[0], "2", 1, mine, sizeof mine - 1, &good);
	AUTO_JSON *answer = page(good.data);
	ck_assert_str_eq(kit_text(answer, "result.resources.0.uri"), "kit://r/3");
	AUTO_JSON *number = kit_ask_modern("resources/list", NULL, "\"cursor\":7,", 200);
	ck_assert_int_eq(kit_code(number), -32602);
}
TEST_END

TEST(the_handshake_era_pages_alike_and_is_shaped)
{
	AUTO_JSON *first = kit_ask_legacy("2025-03-26", "resources/list", NULL, 200);
	struct json_object *result = json_get(first, "result");
	ck_assert(!json_has(kit_at(first, "result.resources.0"), "title"));
	ck_assert(!json_has(result, "ttlMs") && !json_has(result, "cacheScope") &&
		  !json_has(result, "resultType") && !json_has(result, "_meta"));
	AUTO_BUF params = BUF_INIT;
	buf_printf(&params, "{\"cursor\":\"%s\"}", kit_text(first, "result.nextCursor"));
	AUTO_JSON *second = kit_ask_legacy("2025-11-25", "resources/list", params.data, 200);
	ck_assert_str_eq(kit_text(second, "result.resources.0.uri"), "kit://r/3");
	ck_assert_str_eq(kit_text(second, "result.resources.0.title"), "A title");
}
TEST_END

TEST(templates_are_one_page_in_their_order)
{
	AUTO_JSON *answer = kit_ask_modern("resources/templates/list", NULL, "", 200);
	struct json_object *list = kit_at(answer, "result.resourceTemplates");
	ck_assert_str_eq(json_text(list, NULL),
			 "[{\"uriTemplate\":\"kit://r/"
			 "{number}\",\"name\":\"number\",\"title\":\"By number\","
			 "\"description\":\"One of seven.\",\"mimeType\":\"text/plain\"},"
			 "{\"uriTemplate\":\"kit://x/{a}/"
			 "{b}\",\"name\":\"pair\",\"description\":\"A pair.\"}]");
	ck_assert_int_gt(json_get_int(json_get(answer, "result"), "ttlMs", -1), 0);
	ck_assert(!json_has(json_get(answer, "result"), "nextCursor"));
	AUTO_JSON *cursor =
		kit_ask_modern("resources/templates/list", NULL, "\"cursor\":\"x\",", 200);
	ck_assert_int_eq(kit_code(cursor), -32602);
	AUTO_JSON *old = kit_ask_legacy("2025-03-26", "resources/templates/list", NULL, 200);
	ck_assert(!json_has(kit_at(old, "result.resourceTemplates.0"), "title"));
}
TEST_END

/* --- contents ----------------------------------------------------------------------------- */

TEST(a_resource_is_read_and_shaped)
{
	AUTO_JSON *answer =
		kit_ask_modern("resources/read", "kit://r/1", "\"uri\":\"kit://r/1\",", 200);
	ck_assert_str_eq(json_text(kit_at(answer, "result.contents"), NULL),
			 "[{\"uri\":\"kit://r/1\",\"text\":\"hello\",\"_meta\":{}}]");
	ck_assert_str_eq(kit_text(answer, "result.resultType"), "complete");
	ck_assert_int_eq(json_get_int(json_get(answer, "result"), "ttlMs", -1), 0);
	AUTO_JSON *old =
		kit_ask_legacy("2025-03-26", "resources/read", "{\"uri\":\"kit://r/1\"}", 200);
	ck_assert_str_eq(json_text(json_get(old, "result"), NULL),
			 "{\"contents\":[{\"uri\":\"kit://r/1\",\"text\":\"hello\"}]}");
}
TEST_END

/* checklist 45 */
TEST(what_is_not_there_is_told_in_the_words_of_the_era)
{
	static const char *const uris[] = {"kit://r/9", "file:///etc/passwd", ""};
	for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
		AUTO_BUF params = BUF_INIT, legacy = BUF_INIT;
		buf_printf(&params, "\"uri\":\"%s\",", uris[i]);
		buf_printf(&legacy, "{\"uri\":\"%s\"}", uris[i]);
		AUTO_JSON *modern = kit_ask_modern("resources/read", uris[i], params.data, 200);
		ck_assert_int_eq(kit_code(modern), -32602);
		ck_assert_str_eq(kit_text(modern, "error.data.uri"), uris[i]);
		AUTO_JSON *old = kit_ask_legacy("2025-06-18", "resources/read", legacy.data, 200);
		ck_assert_int_eq(kit_code(old), -32002);
		ck_assert_str_eq(kit_text(old, "error.data.uri"), uris[i]);
	}
	AUTO_JSON *none = kit_ask_modern("resources/read", NULL, "", 200);
	ck_assert_int_eq(kit_code(none), -32602);
	ck_assert_ptr_null(kit_at(none, "error.data"));
}
TEST_END

TEST(other_failures_say_what_to_do_and_ours_say_nothing)
{
	set_state.fails = ERR_TOO_LARGE;
	AUTO_JSON *large =
		kit_ask_modern("resources/read", "kit://r/1", "\"uri\":\"kit://r/1\",", 200);
	ck_assert_int_eq(kit_code(large), -32602);
	ck_assert_ptr_nonnull(strstr(kit_text(large, "error.message"), "the limit is 8"));
	ck_assert_ptr_nonnull(strstr(kit_text(large, "error.message"), "Use download_file."));
	set_state.fails = ERR_BUSY;
	AUTO_JSON *busy = kit_ask_modern("resources/list", NULL, "", 200);
	ck_assert_int_eq(kit_code(busy), -32603);
	set_state.fails = ERR_IO;
	static const char *const methods[] = {"resources/list", "resources/read"};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		AUTO_JSON *ours =
			kit_ask_modern(methods[i], "kit://r/1", "\"uri\":\"kit://r/1\",", 200);
		ck_assert_int_eq(kit_code(ours), -32603);
		ck_assert_str_eq(kit_text(ours, "error.message"), "Internal error");
	}
}
TEST_END

TEST(a_read_can_ask_the_client_first)
{
	AUTO_MEM m, n;
	AUTO_BUF body = BUF_INIT, retry = BUF_INIT;
	kit_modern_as(&m, &body, "resources/read", "kit://r/ask", "\"uri\":\"kit://r/ask\",",
		      KIT_CAN("\"roots\":{}"));
	kit_serve(&m);
	AUTO_JSON *asks = kit_json(&m);
	ck_assert_str_eq(kit_text(asks, "result.resultType"), "input_required");
	ck_assert_str_eq(kit_text(asks, "result.inputRequests.where.method"), "roots/list");
	/* checklist 60 */
	ck_assert(!json_has(json_get(asks, "result"), "ttlMs"));
	ck_assert(!json_has(json_get(asks, "result"), "cacheScope"));
	kit_modern_as(&n, &retry, "resources/read", "kit://r/ask",
		      "\"uri\":\"kit://r/ask\",\"inputResponses\":{\"where\":{\"roots\":[]}},",
		      KIT_CAN("\"roots\":{}"));
	kit_serve(&n);
	AUTO_JSON *answer = kit_json(&n);
	ck_assert_str_eq(kit_text(answer, "result.contents.0.text"), "hello");
	ck_assert_int_eq(json_get_int(json_get(answer, "result"), "ttlMs", -1), 0);
	ck_assert_str_eq(kit_text(answer, "result.cacheScope"), "private");
	AUTO_JSON *missing =
		kit_ask_modern("resources/read", "kit://r/ask", "\"uri\":\"kit://r/ask\",", 400);
	ck_assert_int_eq(kit_code(missing), -32021);
	ck_assert_str_eq(json_text(kit_at(missing, "error.data"), NULL),
			 "{\"requiredCapabilities\":{\"roots\":{}}}");
	AUTO_JSON *old =
		kit_ask_legacy("2025-11-25", "resources/read", "{\"uri\":\"kit://r/ask\"}", 200);
	ck_assert_int_eq(kit_code(old), -32600);
}
TEST_END

/* --- subscriptions and capabilities ------------------------------------------------------- */

TEST(who_subscribes_in_the_handshake_era_gets_an_empty_result)
{
	static const char *const methods[] = {"resources/subscribe", "resources/unsubscribe"};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		AUTO_JSON *answer =
			kit_ask_legacy("2025-11-25", methods[i], "{\"uri\":\"kit://r/1\"}", 200);
		ck_assert_str_eq(json_text(json_get(answer, "result"), NULL), "{}");
		AUTO_JSON *none = kit_ask_legacy("2025-11-25", methods[i], "{}", 200);
		ck_assert_int_eq(kit_code(none), -32602);
		AUTO_JSON *modern = kit_ask_modern(methods[i], NULL, "\"uri\":\"kit://r/1\",", 404);
		ck_assert_int_eq(kit_code(modern), -32601);
	}
	kit.resources = &quiet;
	AUTO_JSON *unknown = kit_ask_legacy("2025-11-25", methods[0], "{\"uri\":\"x\"}", 200);
	ck_assert_int_eq(kit_code(unknown), -32601);
}
TEST_END

static void check_capabilities(const char *modern, const char *legacy)
{
	AUTO_JSON *discovered = kit_ask_modern("server/discover", NULL, "", 200);
	ck_assert_str_eq(json_text(kit_at(discovered, "result.capabilities"), NULL), modern);
	AUTO_JSON *hello = kit_ask_legacy(NULL, "initialize", "{}", 200);
	ck_assert_str_eq(json_text(kit_at(hello, "result.capabilities"), NULL), legacy);
}

/* checklist 38 */
TEST(what_is_advertised_follows_what_there_is)
{
	check_capabilities("{\"tools\":{},\"resources\":{}}",
			   "{\"tools\":{},\"resources\":{\"subscribe\":true}}");
	kit.resources = &quiet;
	check_capabilities("{\"tools\":{},\"resources\":{}}", "{\"tools\":{},\"resources\":{}}");
	kit.resources = NULL;
	check_capabilities("{\"tools\":{}}", "{\"tools\":{}}");
	AUTO_JSON *list = kit_ask_modern("resources/list", NULL, "", 200);
	ck_assert_str_eq(json_text(kit_at(list, "result.resources"), NULL), "[]");
	AUTO_JSON *read =
		kit_ask_modern("resources/read", "kit://r/1", "\"uri\":\"kit://r/1\",", 200);
	ck_assert_int_eq(kit_code(read), -32602);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		walking_all_pages_gives_each_resource_once,
		a_cursor_that_is_not_of_this_list_and_caller_is_refused,
		the_handshake_era_pages_alike_and_is_shaped,
		templates_are_one_page_in_their_order,
		a_resource_is_read_and_shaped,
		what_is_not_there_is_told_in_the_words_of_the_era,
		other_failures_say_what_to_do_and_ours_say_nothing,
		a_read_can_ask_the_client_first,
		who_subscribes_in_the_handshake_era_gets_an_empty_result,
		what_is_advertised_follows_what_there_is,
	};
	kit.resources = &full;
	kit_open();
	int failed = unit_run("endpoint_resource", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
