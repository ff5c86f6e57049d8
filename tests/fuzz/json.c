/* What json_parse accepts is printed as text that it reads as the same value. */
#include "fuzz.h"

#include "base/json.h"

static void check_again(struct json_object *value)
{
	struct err err = ERR_INIT;
	size_t len;
	const char *text = json_text(value, &len);
	assert(strlen(text) == len && text_is_utf8(text, len));
	assert(memchr(text, '\n', len) == NULL); /* a message is one line over stdio */
	AUTO_JSON *again = json_parse(text, len, &err);
	assert(err.code == ERR_NONE);
	assert(json_object_equal(value, again));
	assert(strcmp(json_text(again, NULL), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	AUTO_JSON *value = json_parse((const char *)data, size, &err);
	if (err.code == ERR_NONE) {
		check_again(value);
		return 0;
	}
	fuzz_check_err(&err);
	assert(value == NULL);
	return 0;
}
