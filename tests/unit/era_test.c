/* Which era a message belongs to, and what each revision may see. */
#include "mcp/era.h"

#include "unit.h"

#define CLAIM(version) \
	"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" version \
	",\"io.modelcontextprotocol/clientCapabilities\":{}}}"

TEST(the_first_rule_that_matches_decides_the_era)
{
	static const struct {
		const char *method, *params, *version;
		enum era era;
	} cases[] = {
		{"tools/list", CLAIM("\"2026-07-28\""), NULL, ERA_MODERN},
		{"tools/list", CLAIM("\"2026-07-28\""), "2025-11-25", ERA_MODERN},
		{"initialize", CLAIM("\"2025-11-25\""), NULL, ERA_MODERN},
		{"tools/list", CLAIM("null"), NULL, ERA_MODERN},
		{"tools/list", CLAIM("[]"), NULL, ERA_MODERN},
		{"initialize", "{}", "2026-07-28", ERA_LEGACY},
		{"initialize", "{\"_meta\":{}}", "2026-07-28", ERA_LEGACY},
		{"tools/list", "{}", "2026-07-28", ERA_MODERN},
		{"tools/list", "{}", "2027-01-01", ERA_MODERN},
		{"tools/list", "{}", "2026-07-27", ERA_LEGACY},
		{"tools/list", "{\"_meta\":\"x\"}", "2025-06-18", ERA_LEGACY},
		{"tools/list", "{\"_meta\":{\"progressToken\":1}}", NULL, ERA_LEGACY},
		{"server/discover", NULL, NULL, ERA_LEGACY},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *params = cases[i].params == NULL ? NULL : json_literal(cases[i].params);
		struct rpc_message message = {.method = cases[i].method, .params = params};
		ck_assert_msg(era_decide(&message, cases[i].version) == cases[i].era, "case %zu",
			      i);
	}
}
TEST_END

TEST(revisions_are_found_by_their_whole_name)
{
	enum revision revision;
	for (int i = 0; i < REVISION__MAX; i++) {
		ck_assert(era_find_revision(era_revision_name((enum revision)i), &revision));
		ck_assert_int_eq(revision, i);
	}
	ck_assert(!era_find_revision("2025-11-2", &revision));
	ck_assert(!era_find_revision("2025-11-25 ", &revision));
	ck_assert(!era_find_revision("2024-11-05", &revision));
}
TEST_END

TEST(revisions_are_in_order_of_time_and_listed_newest_first)
{
	for (int i = 1; i < REVISION__MAX; i++)
		ck_assert_int_lt(strcmp(era_revision_name((enum revision)(i - 1)),
					era_revision_name((enum revision)i)),
				 0);
	AUTO_JSON *legacy = era_revisions(ERA_LEGACY);
	AUTO_JSON *modern = era_revisions(ERA_MODERN);
	ck_assert_str_eq(json_text(legacy, NULL), "[\"2025-11-25\",\"2025-06-18\",\"2025-03-26\"]");
	ck_assert_str_eq(json_text(modern, NULL), "[\"2026-07-28\"]");
}
TEST_END

TEST(members_are_left_out_where_they_are_unknown)
{
	static const struct {
		enum revision revision;
		const char *left;
	} cases[] = {
		{REVISION_2025_03_26, "{\"name\":\"n\"}"},
		{REVISION_2025_06_18, "{\"name\":\"n\",\"title\":\"t\",\"_meta\":{},"
				      "\"outputSchema\":{},\"structuredContent\":{}}"},
		{REVISION_2025_11_25,
		 "{\"name\":\"n\",\"title\":\"t\",\"_meta\":{},\"outputSchema\":{},"
		 "\"structuredContent\":{},\"icons\":[],\"websiteUrl\":\"w\"}"},
		{REVISION_2026_07_28,
		 "{\"name\":\"n\",\"title\":\"t\",\"_meta\":{},\"outputSchema\":{},"
		 "\"structuredContent\":{},\"icons\":[],\"websiteUrl\":\"w\"}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *object = json_literal(cases[3].left);
		era_shape(object, cases[i].revision);
		ck_assert_str_eq(json_text(object, NULL), cases[i].left);
	}
}
TEST_END

TEST(links_become_text_where_there_are_no_links)
{
	static const char text[] = "[{\"type\":\"text\",\"text\":\"a\",\"_meta\":{}},"
				   "{\"type\":\"resource_link\",\"uri\":\"u:x\"},"
				   "{\"type\":\"resource_link\",\"uri\":\"u:y\",\"name\":\"y\"}]";
	AUTO_JSON *old = json_literal(text);
	era_shape_content(old, REVISION_2025_03_26);
	ck_assert_str_eq(json_text(old, NULL), "[{\"type\":\"text\",\"text\":\"a\"},"
					       "{\"type\":\"text\",\"text\":\"resource: u:x\"},"
					       "{\"type\":\"text\",\"text\":\"y: u:y\"}]");
	AUTO_JSON *newer = json_literal(text);
	era_shape_content(newer, REVISION_2025_06_18);
	ck_assert_str_eq(json_text(newer, NULL), text);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_first_rule_that_matches_decides_the_era,
		revisions_are_found_by_their_whole_name,
		revisions_are_in_order_of_time_and_listed_newest_first,
		members_are_left_out_where_they_are_unknown,
		links_become_text_where_there_are_no_links,
	};
	return unit_run("era", unit_tests, ARRAY_LEN(unit_tests));
}
