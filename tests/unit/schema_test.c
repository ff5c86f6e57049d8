/* The subset of JSON Schema: what compiles, what conforms, what the faults say. */
#include "mcp/schema.h"

#include "unit.h"

/* checklist 51 */
TEST(schemas_with_a_fault_do_not_compile)
{
	static const struct {
		const char *schema, *said;
	} cases[] = {
		{"{\"typ\":\"string\"}", "typ: this keyword is not known"},
		{"{\"anyOf\":[{}]}", "anyOf: this keyword is not known"},
		{"{\"$ref\":\"#/x\"}", "$ref: this keyword is not known"},
		{"{\"properties\":{\"a\":{\"oneOf\":[]}}}", "properties: a: oneOf: this keyword"},
		{"{\"type\":\"text\"}", "the name of a type"},
		{"{\"type\":[]}", "at least one type"},
		{"{\"type\":5}", "the name of a type"},
		{"{\"properties\":[]}", "an object"},
		{"{\"properties\":{\"a\":true}}", "a schema object"},
		{"{\"items\":[]}", "a schema object"},
		{"{\"required\":[]}", "not empty"},
		{"{\"required\":[5]}", "a list of names"},
		{"{\"required\":[\"a\"]}", "which is no property"},
		{"{\"additionalProperties\":5}", "a schema object"},
		{"{\"minimum\":\"5\"}", "a number"},
		{"{\"multipleOf\":0}", "above 0"},
		{"{\"minLength\":-1}", "at least 0"},
		{"{\"maxItems\":1.5}", "an integer"},
		{"{\"uniqueItems\":1}", "true or false"},
		{"{\"uniqueItems\":true}", "needs maxItems"},
		{"{\"enum\":[]}", "a list of values"},
		{"{\"pattern\":\"[\"}", "an expression"},
		{"{\"pattern\":\"\\\\d\"}", "an expression"},
		{"{\"pattern\":\"(?:a)\"}", "an expression"},
		{"{\"pattern\":\"a*?\"}", "an expression"},
		{"{\"pattern\":\"[[:alpha:]]\"}", "an expression"},
		{"{\"pattern\":\"[\\\\w]\"}", "an expression"},
		{"{\"pattern\":\"\\\\\"}", "an expression"},
		{"{\"description\":5}", "a string"},
		{"{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}", "2020-12"},
		{"{\"type\":\"integer\",\"default\":\"5\"}", "default: expected integer"},
		{"{\"type\":\"integer\",\"examples\":[1,\"x\"]}", "examples: expected integer"},
		{"{\"type\":\"integer\",\"examples\":1}", "a list"},
		{"true", "a schema object"},
		{"5", "a schema object"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = ERR_INIT;
		AUTO_JSON *json = json_literal(cases[i].schema);
		ck_assert_msg(schema_compile(json, &err) == NULL, "%s", cases[i].schema);
		ck_assert_int_eq(err.code, ERR_INVALID);
		ck_assert_msg(strstr(err.msg, cases[i].said) != NULL, "%s: %s", cases[i].schema,
			      err.msg);
	}
}
TEST_END

/* Validates and returns the lines, "" when the value conforms. */
static char *lines_of(const char *schema_text, const char *value_text)
{
	struct err err = ERR_INIT;
	struct schema_faults faults = SCHEMA_FAULTS_INIT;
	AUTO_JSON *json = json_literal(schema_text);
	AUTO_JSON *value = strcmp(value_text, "null") == 0 ? NULL : json_literal(value_text);
	struct schema *schema = schema_compile(json, &err);
	ck_assert_msg(schema != NULL, "%s: %s", schema_text, err.msg);
	bool ok = schema_validate(schema, value, "$", &faults);
	ck_assert_int_eq(ok, faults.count == 0);
	char *lines = xstrdup(buf_str(&faults.lines));
	schema_faults_finish(&faults);
	schema_free(schema);
	return lines;
}

TEST(values_conform_or_not)
{
	static const struct {
		const char *schema, *good, *bad; /* JSON lists */
	} cases[] = {
		{"{}", "[null,1,\"x\",[],{}]", "[]"},
		{"{\"type\":\"null\"}", "[null]", "[0,\"\",false,[],{}]"},
		{"{\"type\":\"boolean\"}", "[true,false]", "[0,\"true\",null]"},
		{"{\"type\":\"integer\"}", "[0,-5,1.0,9223372036854775807]",
		 "[1.5,\"1\",null,1e400,true]"},
		{"{\"type\":\"number\"}", "[0,1.5,-1e3]", "[\"1\",null,1e400]"},
		{"{\"type\":\"string\"}", "[\"\",\"x\"]", "[1,null,[],{}]"},
		{"{\"type\":[\"string\",\"null\"]}", "[\"\",null]", "[1,[]]"},
		{"{\"type\":\"array\"}", "[[],[1]]", "[{},\"[]\"]"},
		{"{\"type\":\"object\"}", "[{},{\"a\":1}]", "[[],\"{}\",null]"},
		{"{\"minimum\":1,\"maximum\":3}", "[1,2,3,1.0,\"x\"]", "[0,4,0.9,3.1]"},
		{"{\"exclusiveMinimum\":1,\"exclusiveMaximum\":3}", "[2,1.1]", "[1,3]"},
		{"{\"multipleOf\":5}", "[0,5,-10,15.0]", "[1,7.5]"},
		{"{\"minLength\":2,\"maxLength\":3}", "[\"ab\",\"\xC3\xA4\xC3\xB6\xC3\xBC\",5]",
		 "[\"a\",\"abcd\",\"\xC3\xA4\",\"\xF0\x9F\x98\x80\"]"},
		{"{\"pattern\":\"^[a-z][a-z0-9-]{0,3}$\"}", "[\"a\",\"a-1b\"]",
		 "[\"\",\"A\",\"a-1bc\",\"a\\n\",\"a\\u0000\"]"},
		{"{\"pattern\":\"b\"}", "[\"abc\"]", "[\"ac\"]"},
		{"{\"pattern\":\"^a\\\\.b$\"}", "[\"a.b\"]", "[\"axb\"]"},
		{"{\"enum\":[\"a\",1,null,{\"x\":[]}]}", "[\"a\",1,1.0,null,{\"x\":[]}]",
		 "[\"b\",2,false,{\"x\":1}]"},
		{"{\"const\":\"a\"}", "[\"a\"]", "[\"b\",null]"},
		{"{\"const\":null}", "[null]", "[0,\"\"]"},
		{"{\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":2}", "[[1],[1,2]]",
		 "[[],[1,2,3],[\"x\"]]"},
		{"{\"uniqueItems\":true,\"maxItems\":9}",
		 "[[],[1,2],[\"1\",1],[{\"a\":1},{\"a\":2}]]",
		 "[[1,1],[1,1.0],[{\"a\":1},{\"a\":1}]]"},
		{"{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}",
		 "[{\"a\":\"\"},{\"a\":\"\",\"b\":1}]", "[{},{\"a\":null},{\"b\":\"\"}]"},
		{"{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "[{},{\"a\":null}]",
		 "[{\"b\":1},{\"a\":1,\"b\":1}]"},
		{"{\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"string\"}}",
		 "[{\"a\":1,\"b\":\"\"}]", "[{\"b\":1}]"},
		{"{\"minProperties\":1,\"maxProperties\":2}", "[{\"a\":1}]",
		 "[{},{\"a\":1,\"b\":1,\"c\":1}]"},
		{"{\"$schema\":\"https://json-schema.org/draft/2020-12/"
		 "schema\",\"format\":\"uri\"}",
		 "[\"no uri\"]", "[]"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (int good = 0; good < 2; good++) {
			AUTO_JSON *list = json_literal(good ? cases[i].good : cases[i].bad);
			for (size_t j = 0; j < json_object_array_length(list); j++) {
				struct json_object *value = json_object_array_get_idx(list, j);
				const char *text = value == NULL ? "null" : json_text(value, NULL);
				AUTO_FREE char *lines = lines_of(cases[i].schema, text);
				ck_assert_msg((*lines == '\0') == good, "%s with %s: %s",
					      cases[i].schema, text, lines);
			}
		}
	}
}
TEST_END

/* checklist 53 */
TEST(faults_name_path_expectation_and_value)
{
	static const struct {
		const char *schema, *value, *lines;
	} cases[] = {
		{"{\"type\":\"string\"}", "5", "$: expected string, got integer 5"},
		{"{\"type\":[\"string\",\"null\"]}", "true",
		 "$: expected null or string, got boolean true"},
		{"{\"items\":{\"properties\":{\"n\":{\"minimum\":2}}}}", "[{\"n\":2},{\"n\":1}]",
		 "$[1].n: expected at least 2, got integer 1"},
		{"{\"enum\":[\"a\",\"b\"]}", "\"c\"",
		 "$: expected one of [\"a\",\"b\"], got string \"c\""},
		{"{\"maxLength\":1}", "\"abc\"",
		 "$: expected at most 1 characters (it has 3), got string \"abc\""},
		{"{\"properties\":{\"command\":{},\"cwd\":{}},\"additionalProperties\":false}",
		 "{\"cmd\":1}",
		 "$.cmd: expected no member of this name, did you mean \"command\"?"},
		{"{\"properties\":{\"command\":{},\"cwd\":{}},\"additionalProperties\":false}",
		 "{\"zebra\":1}",
		 "$.zebra: expected no member of this name; known are command, cwd"},
		{"{\"properties\":{},\"additionalProperties\":false}", "{\"a\\n\\\"b\":1}",
		 "$.a\\x0a\\\"b: expected no member of this name"},
		{"{\"properties\":{\"a\":{\"type\":\"array\"},\"b\":{}},\"required\":[\"a\",\"b\"]"
		 "}",
		 "{}",
		 "$.a: expected array, got nothing (it is required)\n"
		 "$.b: expected a value, got nothing (it is required)"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE char *lines = lines_of(cases[i].schema, cases[i].value);
		ck_assert_str_eq(lines, cases[i].lines);
	}
}
TEST_END

TEST(of_many_faults_ten_are_told_and_the_rest_counted)
{
	AUTO_BUF value = BUF_INIT;
	buf_puts(&value, "[0");
	for (int i = 1; i < 25; i++)
		buf_puts(&value, ",0");
	buf_puts(&value, "]");
	AUTO_FREE char *lines = lines_of("{\"items\":{\"type\":\"string\"}}", value.data);
	int count = 1;
	for (const char *p = lines; *p != '\0'; p++)
		count += *p == '\n';
	ck_assert_int_eq(count, SCHEMA_FAULTS_MAX + 1);
	ck_assert_ptr_nonnull(strstr(lines, "\nand 15 more"));
}
TEST_END

TEST(long_values_are_shown_by_their_beginning)
{
	AUTO_BUF value = BUF_INIT;
	buf_putc(&value, '"');
	for (int i = 0; i < 5000; i++)
		buf_puts(&value, "\xC3\xA4");
	buf_putc(&value, '"');
	AUTO_FREE char *lines = lines_of("{\"type\":\"integer\"}", value.data);
	ck_assert_uint_lt(strlen(lines), 200);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		schemas_with_a_fault_do_not_compile,
		values_conform_or_not,
		faults_name_path_expectation_and_value,
		of_many_faults_ten_are_told_and_the_rest_counted,
		long_values_are_shown_by_their_beginning,
	};
	return unit_run("schema", unit_tests, ARRAY_LEN(unit_tests));
}
