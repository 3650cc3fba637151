/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_path.py uses this. It prints the path that ktrxer_path_resolve() finds, as one JSON object, or its error and 1.
 *     path_probe TO [dev=NAME] [from=ADDR] [mac=XX:XX:XX:XX:XX:XX] [timeout=MS] [no-link-address]
 *     path_probe device NAME | devices
 */
#include <ktrxer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const char *mac_format(const uint8_t mac[6], char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	return text;
}

static void device_print(const struct ktrxer_device *device)
{
	char mac[18];

	printf("{\"name\": \"%s\", \"index\": %u, \"link\": %d, \"mac\": \"%s\", \"mtu\": %u, \"up\": %d, \"running\": "
	       "%d, \"loopback\": %d, \"needs_neighbour\": %d, \"kind\": \"%s\", \"qdisc\": \"%s\", \"driver\": "
	       "\"%s\", \"tx_queues\": %u}",
	       device->name, device->index, (int)device->link, mac_format(device->mac, mac), device->mtu, device->up,
	       device->running, device->loopback, device->needs_neighbour, device->kind, device->qdisc, device->driver,
	       device->tx_queues);
}

/* Texts of errors are without control characters; quotes and backslashes are all that JSON minds. */
static int fail(int code, const struct ktrxer_error *err, uint64_t took_ns)
{
	printf("{\"code\": %d, \"took_ms\": %llu, \"error\": \"", code, (unsigned long long)(took_ns / 1000000));
	for (const char *c = err->text; *c; c++)
		printf("%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
	printf("\"}\n");
	return 1;
}

static int devices(void)
{
	struct ktrxer_device list[64];
	struct ktrxer_error err = { 0 };
	int count = ktrxer_device_list(list, 64, &err);

	if (count < 0)
		return fail(count, &err, 0);
	printf("{\"count\": %d, \"devices\": [", count);
	for (int i = 0; i < count && i < 64; i++) {
		printf("%s", i ? ", " : "");
		device_print(&list[i]);
	}
	printf("]}\n");
	return 0;
}

static int device(const char *name)
{
	struct ktrxer_error err = { 0 };
	struct ktrxer_device one;
	int ret = ktrxer_device_get(&one, name, &err);

	if (ret)
		return fail(ret, &err, 0);
	device_print(&one);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct ktrxer_path_options options = KTRXER_PATH_OPTIONS_INIT;
	char source[KTRXER_ADDR_TEXT], to[KTRXER_ADDR_TEXT], hop[KTRXER_ADDR_TEXT], mac[18];
	struct ktrxer_error err = { 0 };
	struct ktrxer_path path;
	uint64_t start;
	uint8_t given[6];
	int ret;

	if (argc == 2 && !strcmp(argv[1], "devices"))
		return devices();
	if (argc == 3 && !strcmp(argv[1], "device"))
		return device(argv[2]);
	if (argc < 2 || ktrxer_addr_parse(&options.to, argv[1]))
		return 2;
	for (int i = 2; i < argc; i++) {
		const char *value = strchr(argv[i], '=') ? strchr(argv[i], '=') + 1 : "";

		if (!strncmp(argv[i], "dev=", 4)) {
			options.device = value;
		} else if (!strncmp(argv[i], "from=", 5)) {
			if (ktrxer_addr_parse(&options.from, value))
				return 2;
		} else if (!strncmp(argv[i], "mac=", 4)) {
			if (sscanf(value, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &given[0], &given[1], &given[2], &given[3],
				   &given[4], &given[5]) != 6)
				return 2;
			options.next_hop_mac = given;
		} else if (!strncmp(argv[i], "timeout=", 8)) {
			options.timeout_ms = (uint32_t)strtoul(value, NULL, 10);
		} else if (!strcmp(argv[i], "no-link-address")) {
			options.no_link_address = true;
		} else {
			return 2;
		}
	}
	start = now_ns();
	ret = ktrxer_path_resolve(&path, &options, &err);
	if (ret)
		return fail(ret, &err, now_ns() - start);
	printf("{\"code\": 0, \"took_ms\": %llu, \"source\": \"%s\", \"to\": \"%s\", \"next_hop\": \"%s\", \"mac\": "
	       "\"%s\", \"mtu\": %u, \"needs_stack\": %d, \"device\": ",
	       (unsigned long long)((now_ns() - start) / 1000000), ktrxer_addr_format(&path.source, source),
	       ktrxer_addr_format(&path.to, to), ktrxer_addr_format(&path.next_hop, hop),
	       mac_format(path.next_hop_mac, mac), path.mtu, path.needs_stack);
	device_print(&path.device);
	printf("}\n");
	return 0;
}
