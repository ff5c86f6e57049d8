#include "unit.h"

#include <math.h>

#include "base/json.h"
#include "base/text.h"

static bool parses(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	json_object_put(json_parse(text, len, &err));
	return err.code == ERR_NONE;
}

/* The table of what json-c alone would let through, and the rest of the grammar's edges. */
TEST(only_the_grammar_of_rfc_8259_is_accepted)
{
	static const struct {
		const char *text;
		size_t len;
		bool ok;
	} cases[] = {
#define CASE(text, ok) {text, sizeof(text) - 1, ok}
		CASE("{\"a\":[1,2.5,-3e2,true,false,null,\"x\"]}", true),
		CASE("12", true),
		CASE("null", true),
		CASE(" \t\r\n\"s\" ", true),
		CASE("\xEF\xBB\xBF{}", true),
		CASE("\"\\ud83d\\ude00\"", true),
		CASE("\"\\u0000\"", true),
		CASE("\"\\\\ud800\"", true), /* a backslash and five letters */
		CASE("\"\\\\\\uD83D\\uDE00\"", true),
		CASE("\"\\ud800\"", false),
		CASE("\"\\uD800x\"", false),
		CASE("\"\\ud800\\n\"", false),
		CASE("\"\\ud800\\u0041\"", false),
		CASE("\"\\ud800\\ud800\\udc00\"", false),
		CASE("\"\\udc00\"", false),
		CASE("\"\\udc00\\ud800\"", false),
		CASE("{\"a\\udfff\":1}", false),
		CASE("", false),
		CASE("   ", false),
		CASE("{'a':1}", false),
		CASE("[NaN]", false),
		CASE("[Infinity]", false),
		CASE("[-Infinity]", false),
		CASE("[1.]", false),
		CASE("[01]", false),
		CASE("[+1]", false),
		CASE("[.5]", false),
		CASE("[1,]", false),
		CASE("{\"a\":1,}", false),
		CASE("{a:1}", false),
		CASE("[1]x", false),
		CASE("[1] [2]", false),
		CASE("[1", false),
		CASE("{\"a\"", false),
		CASE("/* c */ 1", false),
		CASE("\"a\tb\"", false),
		CASE("\"a\x01\"", false),
		CASE("\"\xC0\x80\"", false),
		CASE("\"\xED\xA0\x80\"", false),
		CASE("\"\xFF\"", false),
		CASE("1\0", false),
		CASE("\"\\x41\"", false),
#undef CASE
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(parses(cases[i].text, cases[i].len) == cases[i].ok, "case %zu: %s", i,
			      cases[i].text);
}
TEST_END

TEST(depth_is_bounded)
{
	char deep[2 * 200];
	for (int depth = 60; depth <= 100; depth += 20) {
		memset(deep, '[', (size_t)depth);
		memset(deep + depth, ']', (size_t)depth);
		ck_assert_int_eq(parses(deep, 2 * (size_t)depth), depth <= JSON_MAX_DEPTH);
	}
}
TEST_END

TEST(the_number_of_values_is_bounded_but_not_the_length_of_a_string)
{
	AUTO_BUF text = BUF_INIT;
	buf_putc(&text, '[');
	for (int i = 0; i < JSON_MAX_VALUES - 1; i++)
		buf_puts(&text, "1,");
	buf_puts(&text, "1]");
	ck_assert(parses(text.data, text.len));
	text.len--;
	buf_puts(&text, ",1]");
	ck_assert(!parses(text.data, text.len));
	buf_clear(&text);
	buf_puts(&text, "[\"\\\"");
	for (int i = 0; i < 2 * JSON_MAX_VALUES; i++)
		buf_puts(&text, "[,{");
	buf_puts(&text, "\"]");
	ck_assert(parses(text.data, text.len));
}
TEST_END

TEST(getters_give_the_fallback_for_another_type)
{
	AUTO_JSON *obj =
		json_literal("{\"s\":\"x\",\"n\":7,\"f\":8.0,\"h\":1.5,\"b\":true,\"z\":null}");
	ck_assert_str_eq(json_get_str(obj, "s"), "x");
	ck_assert_ptr_null(json_get_str(obj, "n"));
	ck_assert_ptr_null(json_get_str(obj, "missing"));
	ck_assert_int_eq(json_get_int(obj, "n", 1), 7);
	ck_assert_int_eq(json_get_int(obj, "f", 1), 8);
	ck_assert_int_eq(json_get_int(obj, "h", 1), 1);
	ck_assert_int_eq(json_get_int(obj, "s", 1), 1);
	ck_assert(json_get_bool(obj, "b", false));
	ck_assert(json_has(obj, "z"));
	ck_assert_ptr_null(json_get(obj, "z"));
	ck_assert_ptr_null(json_get(NULL, "z"));
}
TEST_END

TEST(draining_writes_the_same_text_and_frees_each_part)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"null",
		"\"a\"",
		"{\"a\":null,\"b\":[],\"c\":{}}",
		"{\"content\":[{\"type\":\"text\",\"text\":\"x\\n\\\"/"
		"\"},{\"n\":[1,[2,{\"deep\":[3]}]]},"
		"null,1.5],\"k\\\"ey\":true}",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err err;
		AUTO_BUF out = BUF_INIT;
		struct json_object *value = json_parse(texts[i], strlen(texts[i]), &err);
		AUTO_JSON *part = json_object_get(json_get(value, "content"));
		buf_puts(&out, "before ");
		json_drain(&out, value);
		ck_assert_str_eq(buf_str(&out) + strlen("before "), texts[i]);
		for (size_t j = 0; part != NULL && j < json_object_array_length(part); j++)
			ck_assert_ptr_null(json_object_array_get_idx(part, j));
	}
}
TEST_END

TEST(what_is_written_is_valid_whatever_came_in)
{
	AUTO_JSON *obj = json_object_new_object();
	json_add_strn(obj, "bytes", "a\xFF\0b", 4);
	json_add_str(obj, "absent", NULL);
	json_add_int(obj, "n", INT64_MAX);
	json_add_str(obj, "slash", "a/b");
	size_t len;
	const char *text = json_text(obj, &len);
	ck_assert_uint_eq(strlen(text), len);
	ck_assert(text_is_utf8(text, len));
	ck_assert(parses(text, len));
	ck_assert_ptr_null(strchr(text, '\n'));
	ck_assert_ptr_null(strstr(text, "absent"));
	ck_assert_ptr_nonnull(strstr(text, "a/b"));
	ck_assert_ptr_nonnull(strstr(text, "9223372036854775807"));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		only_the_grammar_of_rfc_8259_is_accepted,
		depth_is_bounded,
		the_number_of_values_is_bounded_but_not_the_length_of_a_string,
		getters_give_the_fallback_for_another_type,
		draining_writes_the_same_text_and_frees_each_part,
		what_is_written_is_valid_whatever_came_in,
	};
	return unit_run("json", unit_tests, ARRAY_LEN(unit_tests));
}
