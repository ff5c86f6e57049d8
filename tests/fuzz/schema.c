/*
 * Any JSON as a schema, and any JSON against it.
 *
 * Input: a line with the schema, the value behind it.
 */
#include "fuzz.h"

#include "mcp/schema.h"

/* Patterns are ours, and the C library compiles some of those that are not in exponential time or
 * memory. */
static bool has_foreign_pattern(const char *schema)
{
	const char *pattern = strstr(schema, "pattern");
	return pattern != NULL && strstr(pattern, "\"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$\"") == NULL;
}

static size_t count_lines(const char *text)
{
	size_t count = text[0] != '\0';
	for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
		count++;
	return count;
}

/* One for each of the first faults, and one that tells of the others. */
static size_t expected_lines(size_t faults)
{
	return faults > SCHEMA_FAULTS_MAX ? SCHEMA_FAULTS_MAX + 1 : faults;
}

/* has_plain_names: no newline is in the texts of the schema, which are ours and shown as they are.
 */
static void check_value(const struct schema *schema, bool has_plain_names, const char *text,
			size_t len)
{
	struct err err = ERR_INIT;
	struct schema_faults faults = SCHEMA_FAULTS_INIT;
	AUTO_JSON *value = json_parse(text, len, &err);
	if (err.code != ERR_NONE)
		return;
	bool ok = schema_validate(schema, value, "arguments", &faults);
	const char *lines = buf_str(&faults.lines);
	assert(ok == (faults.count == 0) && ok == (faults.lines.len == 0));
	assert(strlen(lines) == faults.lines.len && text_is_utf8(lines, faults.lines.len));
	if (has_plain_names)
		assert(count_lines(lines) == expected_lines(faults.count));
	schema_faults_finish(&faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct fuzz_input in = fuzz_input(data, size);
	AUTO_FREE char *text = fuzz_line(&in);
	AUTO_JSON *json = json_parse(text, strlen(text), &err);
	if (json == NULL || has_foreign_pattern(json_text(json, NULL)))
		return 0;
	struct schema *schema = schema_compile(json, &err);
	if (schema == NULL) {
		fuzz_check_err(&err);
		return 0;
	}
	check_value(schema, strchr(text, '\\') == NULL, in.at, in.len);
	schema_free(schema);
	return 0;
}
