/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "xdp_dispatch.h"

#include "bpf_quiet.h"
#include "clock.h"
#include "limits.h"
#include "rules.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <xdp/libxdp.h>

enum {
	BEAT_MS = 100, /* ten beats before the program takes us for dead */
	FIRST = 10,    /* of libxdp's order (others: 50): rules see what came, not what others left of it */
	MAPS_MOST = 16,
};

/* 0 and the device's programs, NULL where there are none; or a negative errno. */
static int multiprog_get(uint32_t device, struct xdp_multiprog **all)
{
	int rc;

	*all = xdp_multiprog__get_from_ifindex((int)device);
	rc = (int)libxdp_get_error(*all);
	if (rc < 0)
		*all = NULL;
	return rc == -ENOENT ? 0 : rc;
}

bool xdp_dispatch_there(uint32_t device)
{
	struct xdp_multiprog *all;
	bool there = false;

	ktrxer_bpf_quiet_begin();
	if (multiprog_get(device, &all) == 0 && all) {
		there = !xdp_multiprog__is_legacy(all);
		xdp_multiprog__close(all);
	}
	ktrxer_bpf_quiet_end();
	return there;
}

/* -------------------------------------------------------------------------------------------------------- in and out */

static enum xdp_attach_mode mode_of(uint32_t device)
{
	enum xdp_attach_mode mode = XDP_MODE_UNSPEC;
	struct xdp_multiprog *all;

	if (multiprog_get(device, &all) == 0 && all) {
		mode = xdp_multiprog__attach_mode(all);
		xdp_multiprog__close(all);
	}
	return mode;
}

int xdp_dispatch_join(struct xdp_dispatch *dispatch, struct bpf_object *object, const char *name, const struct ktrxer_device *device,
		      struct ktrxer_error *err)
{
	DECLARE_LIBXDP_OPTS(xdp_program_opts, options, .obj = object, .prog_name = name);
	enum xdp_attach_mode mode;
	char word[96];
	int rc;

	ktrxer_bpf_quiet_begin();
	mode = mode_of(device->index);
	*dispatch = (struct xdp_dispatch){ .device = device, .generic = mode == XDP_MODE_SKB, .stop_fd = -1 };
	dispatch->program = xdp_program__create(&options);
	rc = (int)libxdp_get_error(dispatch->program);
	if (rc < 0) {
		dispatch->program = NULL;
	} else {
		xdp_program__set_run_prio(dispatch->program, FIRST);
		rc = xdp_program__attach(dispatch->program, (int)device->index, mode, 0);
		if (rc < 0) {
			xdp_program__close(dispatch->program);
			dispatch->program = NULL;
		}
	}
	ktrxer_bpf_quiet_end();
	if (rc >= 0)
		return 0;
	libxdp_strerror(rc, word, sizeof word);
	return ktrxer_fail(err, rc, "libxdp does not take the rules' program beside those on '%s' (%s): use the back end 'nftables'",
			   device->name, word);
}

static void *beat(void *argument)
{
	struct xdp_dispatch *dispatch = argument;
	struct pollfd stop = { .fd = dispatch->stop_fd, .events = POLLIN };

	do {
		const uint64_t now = ktrxer_now_ns();

		if (*dispatch->alive_ns && now - *dispatch->alive_ns > RULES_SILENCE_NS)
			atomic_fetch_add(&dispatch->pauses, 1);
		*dispatch->alive_ns = now;
	} while (poll(&stop, 1, BEAT_MS) <= 0);
	return NULL;
}

int xdp_dispatch_beat(struct xdp_dispatch *dispatch, __u64 *alive_ns, struct ktrxer_error *err)
{
	sigset_t all, old;
	int rc;

	dispatch->alive_ns = alive_ns;
	dispatch->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (dispatch->stop_fd < 0)
		return ktrxer_fail(err, -errno, "no eventfd for the heartbeat");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&dispatch->thread, NULL, beat, dispatch);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return 0;
	close(dispatch->stop_fd);
	dispatch->stop_fd = -1;
	return ktrxer_fail(err, -rc, "no thread for the heartbeat (%d)", rc);
}

static void heart_stop(struct xdp_dispatch *dispatch)
{
	const uint64_t one = 1;

	if (dispatch->stop_fd < 0)
		return;
	(void)!write(dispatch->stop_fd, &one, sizeof one);
	pthread_join(dispatch->thread, NULL);
	close(dispatch->stop_fd);
	dispatch->stop_fd = -1;
}

void xdp_dispatch_leave(struct xdp_dispatch *dispatch)
{
	if (!dispatch->program)
		return;
	heart_stop(dispatch);
	/* Should libxdp not manage to, nothing is lost: without a heartbeat the program lets everything pass. */
	if (dispatch->alive_ns)
		*dispatch->alive_ns = 0;
	ktrxer_bpf_quiet_begin();
	xdp_program__detach(dispatch->program, (int)dispatch->device->index, XDP_MODE_UNSPEC, 0);
	ktrxer_bpf_quiet_end();
	xdp_program__close(dispatch->program);
	dispatch->program = NULL;
}

/* ------------------------------------------------------------------------------------------------------ left behind */

/* A map of this name and size among those of a program: its descriptor, or -1. */
static int map_of(const __u32 *ids, __u32 count, const char *name, __u32 size)
{
	for (__u32 i = 0; i < count && i < MAPS_MOST; i++) {
		struct bpf_map_info info = { 0 };
		__u32 length = sizeof info;
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &length) && !strcmp(info.name, name) && info.value_size == size)
			return fd;
		close(fd);
	}
	return -1;
}

/* Ours, by its maps: another one's may have its name. */
static bool is_silent(const struct xdp_program *program)
{
	__u32 ids[MAPS_MOST], zero = 0, length = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { .nr_map_ids = MAPS_MOST, .map_ids = (uintptr_t)ids };
	struct rules_control control = { 0 };
	int exact, fd;
	bool silent;

	if (bpf_obj_get_info_by_fd(xdp_program__fd(program), &info, &length))
		return false;
	exact = map_of(ids, info.nr_map_ids, "exact4", sizeof(struct rules_verdict));
	fd = map_of(ids, info.nr_map_ids, "control", sizeof control);
	silent = exact >= 0 && fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &control) &&
		 ktrxer_now_ns() > control.alive_ns + RULES_SILENCE_NS;
	if (exact >= 0)
		close(exact);
	if (fd >= 0)
		close(fd);
	return silent;
}

/* How many are silent; with `clean` the first of them goes. */
static int one_left(const struct ktrxer_device *device, bool clean, int *found)
{
	struct xdp_program *program = NULL;
	struct xdp_multiprog *all;
	int rc = multiprog_get(device->index, &all);

	*found = 0;
	if (!all)
		return clean ? rc : 0;
	while (!xdp_multiprog__is_legacy(all) && (program = xdp_multiprog__next_prog(program, all)))
		if (is_silent(program)) {
			++*found;
			if (!clean)
				continue;
			rc = xdp_program__detach(program, (int)device->index, XDP_MODE_UNSPEC, 0);
			break; /* the list is another one now */
		}
	xdp_multiprog__close(all);
	return rc;
}

int xdp_dispatch_left(const struct ktrxer_device *device, bool clean, struct ktrxer_error *err)
{
	int count = 0, found, rc;
	char word[96];

	ktrxer_bpf_quiet_begin();
	do {
		rc = one_left(device, clean, &found);
		count += rc < 0 ? 0 : found;
	} while (clean && rc == 0 && found);
	ktrxer_bpf_quiet_end();
	if (rc == 0)
		return count;
	libxdp_strerror(rc, word, sizeof word);
	if (rc == -EPERM)
		return ktrxer_fail(err, rc, "XDP programs on '%s' are read and taken out with CAP_BPF and CAP_NET_ADMIN: run it as root (sudo)",
				   device->name);
	return ktrxer_fail(err, rc, "a program that was left behind on '%s' cannot be taken out: %s", device->name, word);
}
