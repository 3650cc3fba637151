/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Somebody else's XDP program on a device: xdp_neighbour DEV [alone]. By libxdp's dispatcher, or alone, as who knows of no libxdp. It
 * prints "ready"; for each line that it reads, the number of packets it was shown. At the end of its input it goes.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <xdp/libxdp.h>

extern const unsigned char neighbour_object[];
extern const size_t neighbour_object_size;

static int say(const char *what, int rc)
{
	char word[128];

	libxdp_strerror(rc, word, sizeof word);
	fprintf(stderr, "%s: %s\n", what, word);
	return 1;
}

int main(int argc, char **argv)
{
	const int device = argc > 1 ? (int)if_nametoindex(argv[1]) : 0;
	struct bpf_object *object = bpf_object__open_mem(neighbour_object, neighbour_object_size, NULL);
	DECLARE_LIBXDP_OPTS(xdp_program_opts, options, .obj = object, .prog_name = "neighbour");
	struct xdp_program *program = NULL;
	struct bpf_link *link = NULL;
	char line[16];
	int rc;

	if (!device || !object)
		return say("device or object", -2);
	if (argc > 2 && !strcmp(argv[2], "alone")) {
		if (bpf_object__load(object))
			return say("load", -22);
		link = bpf_program__attach_xdp(bpf_object__find_program_by_name(object, "neighbour"), device);
		if (!link)
			return say("attach", -22);
	} else {
		program = xdp_program__create(&options);
		rc = (int)libxdp_get_error(program);
		if (rc || (rc = xdp_program__attach(program, device, XDP_MODE_NATIVE, 0)))
			return say("libxdp", rc);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		unsigned int zero = 0;
		unsigned long long seen = 0;

		bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(object, "seen"), &zero, &seen);
		printf("%llu\n", seen);
		fflush(stdout);
	}
	rc = program ? xdp_program__detach(program, device, XDP_MODE_UNSPEC, 0) : 0;
	if (program)
		xdp_program__close(program);
	bpf_link__destroy(link);
	bpf_object__close(object);
	return rc ? say("detach", rc) : 0;
}
