/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "aes.h"
#include "cm.h"

#include <stdbool.h>
#include <string.h>

static void unhex(uint8_t out[16], const char *text)
{
	for (int i = 0; i < 16; i++) {
		unsigned high = (unsigned)(strchr("0123456789abcdef", text[2 * i]) - "0123456789abcdef");
		unsigned low = (unsigned)(strchr("0123456789abcdef", text[2 * i + 1]) - "0123456789abcdef");

		out[i] = (uint8_t)(high << 4 | low);
	}
}

static void check(const char *key_text, const char *plain_text, const char *cipher_text)
{
	uint8_t key[16], plain[16], cipher[16], out[16];
	struct aes128 aes;

	unhex(key, key_text);
	unhex(plain, plain_text);
	unhex(cipher, cipher_text);
	ktrxer_aes128_key(&aes, key);
	ktrxer_aes128_encrypt(&aes, out, plain);
	assert_memory_equal(out, cipher, 16);
	ktrxer_aes128_encrypt(&aes, plain, plain); /* in place */
	assert_memory_equal(plain, cipher, 16);
}

TEST(fips_197)
{
	check("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
	      "3925841d02dc09fbdc118597196a0b32");
	check("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
	      "69c4e0d86a7b0430d8cdb78070b4c55a");
}

TEST(sp_800_38a)
{
	static const char key[] = "2b7e151628aed2a6abf7158809cf4f3c";

	/* F.1.1 ECB-AES128 */
	check(key, "6bc1bee22e409f96e93d7e117393172a", "3ad77bb40d7a3660a89ecaf32466ef97");
	check(key, "ae2d8a571e03ac9c9eb76fac45af8e51", "f5d3d58503b9699de785895a96fdbaaf");
	check(key, "30c81c46a35ce411e5fbc1191a0a52ef", "43b1cd7f598ece23881b00e3ed030688");
	check(key, "f69f2445df4f9b17ad2b417be66c3710", "7b0c785e27e8ad3f8223207104725dd4");
	/* F.5.1 CTR-AES128, the counter blocks */
	check(key, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "ec8cdf7398607cb0f2d21675ea9ea1e4");
	check(key, "f0f1f2f3f4f5f6f7f8f9fafbfcfdff00", "362b7c3c6773516318a077d7fc5073ae");
}

/* NIST's Monte Carlo idea: each output is the next input; it drives every entry of the table through every position. */
TEST(chain_reaches_the_whole_table)
{
	uint8_t block[16] = { 0 }, key[16] = { 0 };
	bool seen[256] = { false };
	struct aes128 aes;
	int values = 0;

	ktrxer_aes128_key(&aes, key);
	ktrxer_aes128_encrypt(&aes, block, block);
	check("00000000000000000000000000000000", "00000000000000000000000000000000",
	      "66e94bd4ef8a2c3b884cfa59ca342b2e");
	for (int i = 0; i < 1000; i++) {
		ktrxer_aes128_encrypt(&aes, block, block);
		for (int j = 0; j < 16; j++) {
			values += !seen[block[j]];
			seen[block[j]] = true;
		}
	}
	assert_int_equal(values, 256);
}
