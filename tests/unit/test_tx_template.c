/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ranges of templates over scripted engines (fake_engine.h): by slots, or by an engine that sends them itself; accounts
 * close in any case.
 */
#include "cm.h"
#include "fake_engine.h"

#include <errno.h>
#include <string.h>

static struct ktx_template *numbered(void)
{
	static const struct ktx_vary field = {
		.field = KTX_FIELD_BYTES, .how = KTX_VARY_COUNTER, .at = 20, .width = 8
	};
	struct ktx_template_options o = KTX_TEMPLATE_OPTIONS_INIT;
	struct ktrxer_error err = { 0 };
	struct ktx_template *made;
	uint8_t frame[60] = { 0 };

	frame[12] = 0x88; /* no IP */
	frame[13] = 0xb5;
	o.frame = frame;
	o.length = sizeof frame;
	o.link = KTRXER_LINK_ETHERNET;
	o.fields = &field;
	o.field_count = 1;
	assert_int_equal(ktx_template_new(&made, &o, &err), 0);
	return made;
}

static struct ktx *open_for_rate(const char *engine, enum ktx_report_kind reports, uint32_t slots)
{
	struct ktx_options options = KTX_OPTIONS_INIT;

	options.engine = engine;
	options.purpose = KTX_FOR_RATE;
	options.reports = reports;
	options.slots = slots;
	options.frame_size = 1000;
	return fake_open_with(options);
}

static struct ktx_range range_of(uint64_t first, uint64_t count)
{
	struct ktx_range range = KTX_RANGE_INIT;

	range.next = first;
	range.left = count;
	return range;
}

static struct ktx_accounts accounts(struct ktx *tx)
{
	struct ktx_accounts a;

	ktx_accounts(tx, &a);
	assert_int_equal(a.requested, a.sent + a.failed + a.skipped + a.cancelled + a.pending);
	return a;
}

TEST(by_slots_each_number_once_and_in_order)
{
	struct ktx *tx = open_for_rate("fake", KTX_REPORT_NONE, 16);
	struct ktx_template *made = numbered();
	struct ktx_range range = range_of(100, 3000);
	struct ktrxer_error err;

	while (range.left) {
		int rc = ktx_template_send(tx, made, &range, &err);

		assert_true(rc == 0 || rc == -EAGAIN);
		if (rc == -EAGAIN)
			fake_await(tx);
	}
	assert_int_equal(range.next, 3100);
	assert_int_equal(fake_drain(tx).sent, 3000);
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(fake.order[i], 100 + i);
	ktx_close(tx);
	ktx_template_free(made);
}

TEST(without_an_end_it_comes_back_now_and_then)
{
	struct ktx *tx = open_for_rate("fake", KTX_REPORT_NONE, 64);
	struct ktx_template *made = numbered();
	struct ktx_range range = KTX_RANGE_INIT;
	struct ktrxer_error err;

	for (int i = 0; i < 20; i++) {
		int rc = ktx_template_send(tx, made, &range, &err);

		assert_true(rc == 0 || rc == -EAGAIN);
		assert_true(range.left == KTRXER_NEVER);
		assert_true(range.next <= 64u * (unsigned)(i + 1));
	}
	assert_true(range.next > 0);
	assert_int_equal(fake_drain(tx).sent, range.next);
	ktx_close(tx);
	ktx_template_free(made);
}

TEST(who_wants_reports_gets_slots)
{
	struct ktx *tx = open_for_rate("kernel", KTX_REPORT_ALL, 16);
	struct ktx_template *made = numbered();
	struct ktx_range range = range_of(5, 3);
	struct ktx_report reports[4];
	struct ktrxer_error err;

	fake.sends_to = UINT32_MAX;
	assert_int_equal(ktx_template_send(tx, made, &range, &err), 0);
	assert_int_equal(fake.stream_starts, 0);
	assert_int_equal(fake_drain(tx).sent, 3);
	assert_int_equal(ktx_reports(tx, reports, 4), 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(reports[i].id, 5 + i);
	ktx_close(tx);
	ktx_template_free(made);
}

TEST(an_engine_of_its_own_takes_it_at_once)
{
	struct ktx *tx = open_for_rate("kernel", KTX_REPORT_FAILURES, 16);
	struct ktx_template *made = numbered();
	struct ktx_range range = range_of(7, 1000000), more = range_of(0, 5);
	struct ktrxer_error err;
	struct ktx_accounts a;

	range.threads = 3;
	assert_int_equal(ktx_template_send(tx, made, &range, &err), 0);
	assert_int_equal(range.left, 0);
	assert_int_equal(range.next, 1000007);
	assert_int_equal(fake.stream.first, 7);
	assert_int_equal(fake.stream.count, 1000000);
	assert_int_equal(fake.stream.threads, 3);
	a = accounts(tx);
	assert_int_equal(a.requested, 1000000);
	assert_int_equal(a.pending, 1000000);
	/* one at a time */
	assert_int_equal(ktx_template_send(tx, made, &more, &err), -EAGAIN);
	assert_int_equal(ktx_drain(tx, ktrxer_now_ns() + 30 * KTRXER_NS_PER_MS), -ETIMEDOUT);
	fake.look = (struct ktx_stream_look){ .taken = 1000000,
					      .sent = 999990,
					      .failed = 10,
					      .queued = 5,
					      .tries = 1000500,
					      .first_ns = 50,
					      .last_ns = 90,
					      .error = -ENOBUFS };
	fake.stream_ends = true;
	a = fake_drain(tx);
	assert_int_equal(a.sent, 999990);
	assert_int_equal(a.failed, 10);
	assert_int_equal(a.driver, 999985);
	assert_int_equal(a.queued, 5);
	assert_int_equal(a.tries, 1000500);
	assert_int_equal(a.bytes, 999990ULL * 60);
	assert_int_equal(a.first_ns, 50);
	assert_int_equal(a.last_ns, 90);
	assert_int_equal(a.last_error, -ENOBUFS);
	/* entered once, however often one looks; and the next one adds to it */
	assert_int_equal(accounts(tx).sent, 999990);
	assert_int_equal(ktx_template_send(tx, made, &more, &err), 0);
	assert_int_equal(accounts(tx).requested, 1000005);
	fake.look = (struct ktx_stream_look){ .taken = 5, .sent = 5, .tries = 5, .first_ns = 100, .last_ns = 100 };
	fake.stream_ends = true;
	assert_int_equal(fake_drain(tx).sent, 999995);
	ktx_close(tx);
	ktx_template_free(made);
}

TEST(cancelled_is_what_was_not_sent)
{
	for (int open = 0; open <= 1; open++) {
		struct ktx *tx = open_for_rate("kernel", KTX_REPORT_NONE, 16);
		struct ktx_template *made = numbered();
		struct ktx_range range = range_of(0, open ? KTRXER_NEVER : 5000);
		struct ktrxer_error err;
		struct ktx_accounts a;

		assert_int_equal(ktx_template_send(tx, made, &range, &err), 0);
		assert_int_equal(range.left, 0);
		fake.look = (struct ktx_stream_look){ .taken = 2048, .sent = 1500, .tries = 1500 };
		a = accounts(tx);
		assert_int_equal(a.requested, open ? 2048 : 5000);
		ktx_cancel(tx);
		assert_true(fake.stream_stopped);
		fake.look.sent = fake.look.tries = 2048;
		fake.stream_ends = true;
		a = fake_drain(tx);
		assert_int_equal(a.sent, 2048);
		assert_int_equal(a.cancelled, open ? 0 : 5000 - 2048);
		ktx_close(tx);
		ktx_template_free(made);
	}
}

TEST(a_device_that_is_gone_fails_the_rest)
{
	struct ktx *tx = open_for_rate("kernel", KTX_REPORT_NONE, 16);
	struct ktx_template *made = numbered();
	struct ktx_range range = range_of(0, 5000);
	struct ktrxer_error err;
	struct ktx_accounts a;

	assert_int_equal(ktx_template_send(tx, made, &range, &err), 0);
	fake.look = (struct ktx_stream_look){
		.taken = 3000, .sent = 1500, .failed = 20, .error = -ENETDOWN, .lost = -ENETDOWN
	};
	fake.gone = -ENETDOWN;
	fake.stream_ends = true;
	a = fake_drain(tx);
	assert_int_equal(a.failed, 3500);
	assert_int_equal(a.last_error, -ENETDOWN);
	range = range_of(0, 1);
	assert_int_equal(ktx_template_send(tx, made, &range, &err), -ENETDOWN);
	ktx_close(tx);
	ktx_template_free(made);
}

TEST(refused_ranges_change_nothing)
{
	struct ktx *tx = open_for_rate("kernel", KTX_REPORT_NONE, 16);
	struct ktx_template *made = numbered();
	struct ktx_range range = range_of(3, 10);
	struct ktrxer_error err;

	fake.stream_refused = -EINVAL;
	assert_int_equal(ktx_template_send(tx, made, &range, &err), -EINVAL);
	assert_int_equal(range.next, 3);
	assert_int_equal(range.left, 10);
	assert_int_equal(accounts(tx).requested, 0);
	range.size = 4;
	assert_int_equal(ktx_template_send(tx, made, &range, &err), -EINVAL);
	range = range_of(3, 0);
	assert_int_equal(ktx_template_send(tx, made, &range, &err), 0);
	assert_int_equal(fake.stream_starts, 0);
	ktx_close(tx);
	ktx_template_free(made);
}

TEST(times_at_the_end_of_the_clock_where_the_kernel_waits)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx;
	uint64_t next;

	options.engine = "kernel";
	options.flags = KTX_CALLER_PUMPS;
	tx = fake_open_with(options);
	assert_int_equal(fake_commit(tx, 1, KTRXER_NEVER - 1, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_true(next > ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S); /* and not at once, again and again */
	ktx_close(tx);
}
