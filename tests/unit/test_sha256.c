/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bytes.h"
#include "cm.h"
#include "sha256.h"

#include <stdlib.h>

static void hex_equal(const uint8_t *bytes, size_t n, const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	char text[129];

	assert_true(n <= 64);
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * n] = '\0';
	assert_string_equal(text, hex);
}

static void digest_of(const void *data, size_t length, uint8_t digest[SHA256_LENGTH])
{
	struct sha256 sha;

	sha256_begin(&sha);
	sha256_add(&sha, data, length);
	sha256_end(&sha, digest);
}

TEST(vectors_of_fips_180_4)
{
	static const struct {
		const char *text, *digest;
	} cases[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnop"
		  "qrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	uint8_t digest[SHA256_LENGTH];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		digest_of(cases[i].text, strlen(cases[i].text), digest);
		hex_equal(digest, sizeof digest, cases[i].digest);
	}
}

TEST(a_million_letters_in_odd_pieces)
{
	struct sha256 sha;
	uint8_t letters[997], digest[SHA256_LENGTH];
	size_t left = 1000000, piece = 1;

	memset(letters, 'a', sizeof letters);
	sha256_begin(&sha);
	while (left) {
		size_t n = piece < left ? piece : left;

		sha256_add(&sha, letters, n);
		left -= n;
		piece = piece % 996 + 1;
	}
	sha256_end(&sha, digest);
	hex_equal(digest, sizeof digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Each length around the ends of blocks, in one piece and byte by byte. */
TEST(pieces_do_not_matter)
{
	uint8_t data[200], one[SHA256_LENGTH], other[SHA256_LENGTH];

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 37);
	for (size_t n = 0; n <= sizeof data; n++) {
		struct sha256 sha;

		digest_of(data, n, one);
		sha256_begin(&sha);
		for (size_t i = 0; i < n; i++)
			sha256_add(&sha, data + i, 1);
		sha256_end(&sha, other);
		assert_memory_equal(one, other, sizeof one);
	}
}

TEST(vectors_of_rfc_4231)
{
	uint8_t secret[131], data[152], mac[SHA256_LENGTH];
	struct hmac_key key;

	memset(secret, 0x0b, 20);
	hmac_key_set(&key, secret, 20);
	hmac_sha256(&key, "Hi There", 8, mac);
	hex_equal(mac, 32, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");

	hmac_key_set(&key, "Jefe", 4);
	hmac_sha256(&key, "what do ya want for nothing?", 28, mac);
	hex_equal(mac, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");

	memset(secret, 0xaa, 20);
	memset(data, 0xdd, 50);
	hmac_key_set(&key, secret, 20);
	hmac_sha256(&key, data, 50, mac);
	hex_equal(mac, 32, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");

	for (int i = 0; i < 25; i++)
		secret[i] = (uint8_t)(i + 1);
	memset(data, 0xcd, 50);
	hmac_key_set(&key, secret, 25);
	hmac_sha256(&key, data, 50, mac);
	hex_equal(mac, 32, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");

	memset(secret, 0x0c, 20); /* the fifth: truncated to 128 bits, as STAMP does */
	hmac_key_set(&key, secret, 20);
	hmac_sha256(&key, "Test With Truncation", 20, mac);
	hex_equal(mac, 16, "a3b6167473100ee06e0c796c2955552b");

	memset(secret, 0xaa, sizeof secret);
	hmac_key_set(&key, secret, sizeof secret);
	hmac_sha256(&key, "Test Using Larger Than Block-Size Key - Hash Key First", 54, mac);
	hex_equal(mac, 32, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	hmac_sha256(&key,
		    "This is a test using a larger than block-size key and a larger than block-size data. "
		    "The key needs to be hashed before being used by the HMAC algorithm.",
		    152, mac);
	hex_equal(mac, 32, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(a_key_serves_many_messages)
{
	uint8_t first[SHA256_LENGTH], second[SHA256_LENGTH];
	struct sha256 message;
	struct hmac_key key;

	hmac_key_set(&key, "", 0);
	hmac_sha256(&key, "", 0, first);
	hex_equal(first, 32, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
	hmac_sha256(&key, "abcdef", 6, first);
	hmac_begin(&message, &key);
	sha256_add(&message, "abc", 3);
	sha256_add(&message, "def", 3);
	hmac_end(&message, &key, second);
	assert_memory_equal(first, second, sizeof first);
}

TEST(comparison)
{
	uint8_t a[32] = { 0 }, b[32] = { 0 };

	assert_true(secret_equal(a, b, sizeof a));
	for (size_t i = 0; i < sizeof a; i++)
		for (int bit = 0; bit < 8; bit++) {
			b[i] ^= (uint8_t)(1 << bit);
			assert_false(secret_equal(a, b, sizeof a));
			b[i] = 0;
		}
	assert_true(secret_equal(a, b, 0));
	memset(a, 7, sizeof a);
	secret_forget(a, sizeof a);
	assert_memory_equal(a, b, sizeof a);
}
