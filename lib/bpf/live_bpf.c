/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "live_bpf.h"

#include "bpf_quiet.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef BPF_F_TEST_XDP_LIVE_FRAMES /* headers before Linux 5.18; the running kernel says whether it knows it */
#define BPF_F_TEST_XDP_LIVE_FRAMES (1U << 1)
#endif

static int load_failed(int rc, struct ktrxer_error *err)
{
	if (rc == -EPERM || rc == -EACCES)
		return ktrxer_fail(err, rc,
				   "XDP programs need CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run as root, or use the "
				   "packet engine");
	if (rc == -ENOMEM)
		return ktrxer_fail(
			err, rc,
			"no memory for the live engine: shorter frames or a lower rate, or use the packet engine");
	if (rc == -ENOSYS)
		return ktrxer_fail(err, rc,
				   "this kernel has no bpf() call (CONFIG_BPF_SYSCALL): use the packet engine");
	return ktrxer_fail(
		err, rc, "this kernel does not take the live program (%m): it needs Linux 5.18; use the packet engine");
}

int ktrxer_live_bpf_open(struct bpf_object **object, const unsigned char *bytes, size_t size, const char *name,
			 struct ktrxer_error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);
	int rc;

	ktrxer_bpf_quiet_begin();
	*object = bpf_object__open_mem(bytes, size, &options);
	rc = *object ? 0 : -errno;
	ktrxer_bpf_quiet_end();
	return rc < 0 ? load_failed(rc, err) : 0;
}

int ktrxer_live_bpf_load(struct bpf_object *object, struct ktrxer_error *err)
{
	int rc;

	ktrxer_bpf_quiet_begin();
	rc = bpf_object__load(object);
	ktrxer_bpf_quiet_end();
	return rc < 0 ? load_failed(rc, err) : 0;
}

int ktrxer_live_bpf_constants(struct bpf_object *object, const void *config, size_t size)
{
	struct bpf_map *map;

	/* The section's map has the object's name in front of its own. */
	bpf_object__for_each_map(map, object) if (bpf_map__map_flags(map) &
						  BPF_F_RDONLY_PROG) return bpf_map__set_initial_value(map, config,
												       size);
	return -ENOENT;
}

struct bpf_map *ktrxer_live_bpf_map(struct bpf_object *object, const char *name)
{
	return bpf_object__find_map_by_name(object, name);
}

int ktrxer_live_bpf_map_fd(struct bpf_object *object, const char *name)
{
	return bpf_map__fd(ktrxer_live_bpf_map(object, name));
}

void *ktrxer_live_bpf_mmap(struct bpf_object *object, const char *name, size_t *size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*size = (*size + page - 1) / page * page;
	return mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, ktrxer_live_bpf_map_fd(object, name), 0);
}

int ktrxer_live_bpf_aim(struct bpf_object *object, const struct ktrxer_device *device, struct ktrxer_error *err)
{
	const uint32_t zero = 0, index = device->index;
	int rc = bpf_map_update_elem(ktrxer_live_bpf_map_fd(object, "device"), &zero, &index, 0);

	if (rc == 0)
		return 0;
	rc = -errno;
	if (rc == -ENODEV || rc == -EINVAL)
		return ktrxer_fail(err, -ENODEV, "device '%s' is gone", device->name);
	return ktrxer_fail(err, rc, "frames cannot be redirected to '%s': %m", device->name);
}

bool ktrxer_live_bpf_trace(struct bpf_object *object, const char *taken, const char *turned_back,
			   struct bpf_link *links[2])
{
	ktrxer_bpf_quiet_begin();
	links[0] = bpf_program__attach(bpf_object__find_program_by_name(object, taken));
	links[1] = bpf_program__attach(bpf_object__find_program_by_name(object, turned_back));
	ktrxer_bpf_quiet_end();
	return links[0] && links[1];
}

int ktrxer_live_bpf_run(int program, const void *frame, uint32_t frame_size, uint32_t repeat, uint32_t batch)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = frame_size, .repeat = (int)repeat,
		    .batch_size = batch, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	return bpf_prog_test_run_opts(program, &options) == 0 ? 0 : -errno;
}
