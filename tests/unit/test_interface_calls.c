/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls on an open transmitter that are refused: NULL, a negative size, flags that this version does not know. One row
 * a refusal.
 */
#include "cm.h"
#include "fake_engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct row {
	const char *call;
	int rc, want;
};
#define ROW(call, want) { #call, call, want }

static void rows_hold(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (rows[i].rc != rows[i].want)
			print_error("%s: %d, expected %d\n", rows[i].call, rows[i].rc, rows[i].want);
		assert_int_equal(rows[i].rc, rows[i].want);
	}
}
#define ROWS_HOLD(rows) rows_hold(rows, sizeof(rows) / sizeof *(rows))

static struct ktx *open_pumped(void)
{
	return fake_open_with(
		(struct ktx_options){ .size = sizeof(struct ktx_options), .flags = KTX_CALLER_PUMPS, .cpu = -1 });
}

TEST(null_is_refused)
{
	static const uint8_t frame[60] = { [12] = 0x88, [13] = 0xb5 };
	struct ktx_template_options of = KTX_TEMPLATE_OPTIONS_INIT;
	struct ktx_range range = KTX_RANGE_INIT;
	struct ktx_probe probe = { .length = 60 };
	struct ktx *tx = open_pumped();
	struct ktx_template *template;
	uint64_t next;
	struct ktx_slot slot;

	of.frame = frame;
	of.length = sizeof frame;
	of.link = KTRXER_LINK_ETHERNET;
	assert_int_equal(ktx_template_new(&template, &of, NULL), 0);
	assert_int_equal(ktx_reserve(tx, &slot), 0);
	const struct row rows[] = {
		ROW(ktx_open(NULL, NULL, NULL), -EINVAL),
		ROW(ktx_reserve(NULL, &slot), -EINVAL),
		ROW(ktx_reserve(tx, NULL), -EINVAL),
		ROW(ktx_commit(NULL, &probe, NULL), -EINVAL),
		ROW(ktx_commit(tx, NULL, NULL), -EINVAL),
		ROW(ktx_check(NULL, frame, sizeof frame, NULL), -EINVAL),
		ROW(ktx_check(tx, NULL, sizeof frame, NULL), -EINVAL),
		ROW(ktx_reports(NULL, NULL, 0), -EINVAL),
		ROW(ktx_reports(tx, NULL, 1), -EINVAL),
		ROW(ktx_fd(NULL), -EINVAL),
		ROW(ktx_reply_fd(NULL), -EINVAL),
		ROW(ktx_pump(NULL, &next), -EINVAL),
		ROW(ktx_pump(tx, NULL), -EINVAL),
		ROW(ktx_pump_due(NULL, &next), -EINVAL),
		ROW(ktx_pump_due(tx, NULL), -EINVAL),
		ROW(ktx_drain(NULL, 0), -EINVAL),
		ROW(ktx_network_errors(NULL, NULL, 0), -EINVAL),
		ROW(ktx_network_errors(tx, NULL, 1), -EINVAL),
		ROW(ktx_template_send(NULL, template, &range, NULL), -EINVAL),
		ROW(ktx_template_send(tx, NULL, &range, NULL), -EINVAL),
		ROW(ktx_template_send(tx, template, NULL, NULL), -EINVAL),
	};

	ROWS_HOLD(rows);
	ktx_template_fill(template, NULL, 1);
	ktx_template_free(template);
	ktx_close(tx);
}

/* Where no errno can come back: no effect, zeros and "". */
TEST(null_without_an_errno)
{
	struct ktx *tx = open_pumped();
	struct ktx_accounts accounts;
	struct ktx_info info;

	ktx_cancel(NULL);
	ktx_info(tx, NULL);
	memset(&info, 0xff, sizeof info);
	ktx_info(NULL, &info);
	assert_string_equal(info.engine, "");
	assert_string_equal(info.reason, "");
	assert_string_equal(info.notes, "");
	assert_int_equal(info.frame_size, 0);
	ktx_accounts(tx, NULL);
	memset(&accounts, 0xff, sizeof accounts);
	ktx_accounts(NULL, &accounts);
	assert_int_equal(accounts.requested, 0);
	assert_int_equal(accounts.pending, 0);
	assert_null(ktx_lateness(NULL));
	ktx_close(tx);
}

TEST(sizes_below_zero_are_refused)
{
	struct ktx_network_error error;
	struct ktx *tx = open_pumped();
	struct ktx_report report;

	const struct row rows[] = {
		ROW(ktx_reports(tx, &report, -1), -EINVAL), ROW(ktx_reports(tx, &report, 0), 0),
		ROW(ktx_reports(tx, NULL, 0), 0),           ROW(ktx_network_errors(tx, &error, -1), -EINVAL),
		ROW(ktx_network_errors(tx, NULL, 0), 0),
	};

	ROWS_HOLD(rows);
	ktx_close(tx);
}

/* A refused probe leaves the slot reserved: nothing is requested. */
TEST(unknown_flags_of_a_probe_are_refused)
{
	struct ktx *tx = open_pumped();
	struct ktx_accounts accounts;
	struct ktx_slot slot;

	assert_int_equal(ktx_reserve(tx, &slot), 0);
	memset(slot.frame, 0, 60);
	for (int bit = 1; bit < 32; bit++) {
		const struct ktx_probe probe = { .length = 60, .flags = 1u << bit };
		struct ktrxer_error err = { 0 };

		assert_int_equal(ktx_commit(tx, &probe, &err), -EINVAL);
		assert_int_equal(err.code, -EINVAL);
		assert_non_null(strstr(err.text, "flags"));
	}
	ktx_accounts(tx, &accounts);
	assert_int_equal(accounts.requested, 0);
	const struct ktx_probe probe = { .length = 60, .flags = KTX_TRAIN_GOES_ON };

	assert_int_equal(ktx_commit(tx, &probe, NULL), 0);
	ktx_accounts(tx, &accounts);
	assert_int_equal(accounts.requested, 1);
	ktx_close(tx);
}
