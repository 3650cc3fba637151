/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_farend_impl.h"

#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SETTLE_NS = 5 * 1000 * 1000, /* the end of the packets: none came for so long */
	SETTLE_MAX = 40,             /* times that, at most */
};

static int try(struct farend *f, const struct farend_judge *judge, const struct bench_net *net,
	       const struct farend_options *o, struct ktrxer_error *err)
{
	int rc = bench_net_far(net), back;

	if (rc < 0)
		return ktrxer_fail(err, rc, "the far host cannot be entered");
	rc = judge->open(f, net, o, err);
	back = bench_net_near(net);
	if (rc == 0) {
		f->judge = judge;
		rc = back < 0 ? ktrxer_fail(err, back, "no route from the far host to this one") : 0;
	}
	return rc;
}

int farend_open(struct farend **out, const struct bench_net *net, const struct farend_options *o,
		struct ktrxer_error *err)
{
	struct farend *f = calloc(1, sizeof *f);
	struct ktrxer_error why = { 0 };
	int rc = -ENOSYS;

	if (!f)
		return ktrxer_fail(err, -ENOMEM, "no memory for the far end");
	f->slots = o->slots;
#ifdef KTRXER_HAVE_BPF
	if (!o->no_bpf) {
		rc = try(f, &farend_xdp, net, o, &why);
		if (rc < 0 && f->judge)
			goto fail;
	} else {
		ktrxer_fail(&why, -ENOSYS, "--no-bpf was given");
	}
#else
	ktrxer_fail(&why, -ENOSYS, "this build has no BPF (clang and libbpf were not there)");
#endif
	if (rc < 0) {
		rc = try(f, &farend_kernel, net, o, err);
		if (rc < 0)
			goto fail;
		snprintf(f->note, sizeof f->note, "judged by the kernel's receive stamps, not by XDP: %s", why.text);
	}
	*out = f;
	return 0;

fail:
	if (why.text[0] && err && !err->text[0])
		*err = why;
	farend_close(f);
	return rc;
}

void farend_close(struct farend *f)
{
	if (!f)
		return;
	if (f->judge)
		f->judge->close(f);
	free(f);
}

const char *farend_name(const struct farend *f)
{
	return f->judge->name;
}

const char *farend_note(const struct farend *f)
{
	return f->note;
}

bool farend_has_calls(const struct farend *f)
{
	return f->calls != NULL;
}

void farend_begin(struct farend *f, uint16_t port, uint16_t cross_port)
{
	f->judge->begin(f, port, cross_port);
}

void farend_end(struct farend *f, struct farend_result *result)
{
	uint64_t before = 0;

	for (int i = 0; i < SETTLE_MAX; i++) {
		struct timespec nap = { .tv_nsec = SETTLE_NS };

		nanosleep(&nap, NULL);
		f->judge->read(f, result);
		if (i && result->probes == before)
			break;
		before = result->probes;
	}
	f->judge->end(f);
	f->judge->read(f, result);
	result->arrivals = f->arrivals;
	result->calls = f->calls;
	result->slots = f->slots;
}
