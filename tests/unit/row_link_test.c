#include "row_kit.h"

#include "store/row_link.h"

static struct sandbox_row sandbox;

/* A live sandbox, and a link to it that is not stored yet. */
static struct link_row make_link(enum link_op op)
{
	struct err err = ERR_INIT;
	if (sandbox.id[0] == '\0') {
		sandbox = kit_row(NAME("alice"), NAME("work"));
		ck_ok(row_sandbox_insert(db, &sandbox, &err) == 1, err);
	}
	struct link_row link = {
		.principal = NAME("alice"),
		.op = op,
		.path = NAME("dir/file"),
		.max_bytes = 100,
		.size = -1,
		.created_at = 5,
		.expires_at = 500,
	};
	id_make(link.id);
	memcpy(link.sandbox_id, sandbox.id, sizeof(link.sandbox_id));
	return link;
}

TEST(a_link_comes_back_as_it_was_stored)
{
	setup();
	struct err err = ERR_INIT;
	static const enum link_op ops[] = {LINK_PUT, LINK_GET};
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct link_row link = make_link(ops[i]);
		ck_ok(row_link_insert(db, &link, &err) == 1, err);
		AUTO_LINK_ROW got = {0};
		ck_ok(row_link_get(db, link.id, &got, &err) == 1, err);
		ck_assert_str_eq(got.id, link.id);
		ck_assert_str_eq(got.sandbox_id, sandbox.id);
		ck_assert_str_eq(got.principal, "alice");
		ck_assert_int_eq(got.op, ops[i]);
		ck_assert_str_eq(got.path, "dir/file");
		ck_assert_int_eq(got.max_bytes, 100);
		ck_assert_int_eq(got.size, -1);
		ck_assert_int_eq(got.created_at, 5);
		ck_assert_int_eq(got.expires_at, 500);
		ck_assert(!got.used);
		ck_assert_int_eq(got.used_at, 0);
	}
	AUTO_LINK_ROW got = {0};
	ck_assert_int_eq(row_link_get(db, "00000000000000000000000000000000", &got, &err), 0);
	teardown();
}
TEST_END

TEST(a_link_needs_a_live_sandbox)
{
	setup();
	struct err err = ERR_INIT;
	struct link_row link = make_link(LINK_GET);
	row_sandbox_move(db, sandbox.id, SANDBOX_LIVE, SANDBOX_KEPT, 1, &err);
	ck_assert_int_eq(row_link_insert(db, &link, &err), 0);
	id_make(link.sandbox_id);
	ck_assert_int_eq(row_link_insert(db, &link, &err), 0);
	ck_assert_int_eq(err.code, ERR_NONE);
	teardown();
}
TEST_END

TEST(a_link_is_claimed_once_until_the_claim_is_taken_back)
{
	setup();
	struct err err = ERR_INIT;
	struct link_row link = make_link(LINK_PUT);
	ck_ok(row_link_insert(db, &link, &err) == 1, err);
	ck_assert_int_eq(row_link_claim(db, link.id, 77, &err), 1);
	ck_assert_int_eq(row_link_claim(db, link.id, 78, &err), 0);
	AUTO_LINK_ROW got = {0};
	ck_assert_int_eq(row_link_get(db, link.id, &got, &err), 1);
	ck_assert(got.used);
	ck_assert_int_eq(got.used_at, 77);
	/* Somebody else's claim stays. */
	ck_assert_int_eq(row_link_unclaim(db, link.id, 76, &err), 0);
	ck_assert_int_eq(row_link_unclaim(db, link.id, 77, &err), 1);
	ck_assert_int_eq(row_link_claim(db, link.id, 79, &err), 1);
	teardown();
}
TEST_END

TEST(a_link_dies_with_its_sandbox)
{
	setup();
	struct err err = ERR_INIT;
	struct link_row link = make_link(LINK_PUT);
	ck_ok(row_link_insert(db, &link, &err) == 1, err);
	row_sandbox_move(db, sandbox.id, SANDBOX_LIVE, SANDBOX_GONE, 1, &err);
	ck_assert_int_eq(row_link_claim(db, link.id, 77, &err), 0);
	teardown();
}
TEST_END

static bool claim(struct db *mine, int index, void *ctx)
{
	struct err err = ERR_INIT;
	return row_link_claim(mine, ctx, 100 + index, &err) == 1;
}

TEST(of_many_that_claim_a_link_one_wins)
{
	setup();
	struct err err = ERR_INIT;
	for (int round = 0; round < 5; round++) {
		struct link_row link = make_link(LINK_GET);
		ck_ok(row_link_insert(db, &link, &err) == 1, err);
		ck_assert_int_eq(kit_run(16, claim, link.id), 1);
	}
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_link_comes_back_as_it_was_stored,
		a_link_needs_a_live_sandbox,
		a_link_is_claimed_once_until_the_claim_is_taken_back,
		a_link_dies_with_its_sandbox,
		of_many_that_claim_a_link_one_wins,
	};
	return unit_run("row_link", unit_tests, ARRAY_LEN(unit_tests));
}
