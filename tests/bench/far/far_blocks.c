/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts values that do not end with a page, while the session may queue no more than their whole
 * pages, and gets them back.
 *
 *   far_blocks ADDRESS PORT
 *
 * Exit status: 0, 1 a result or a byte was wrong, 2 no session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/far/session/api/rocegw_memory.h"
#include "gateway/far/session/api/rocegw_memory_blocks.h"

enum { kWhole = 64 << 10, kValue = kWhole + 100, kBlock = 128 << 10, kValues = 200 };

int main(int count, char** words) {
  if (count != 3) return 64;
  const struct rocegw_memory_donor donor = {.host = words[1], .port = words[2]};
  struct rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  options.donors = &donor;
  options.donor_count = 1;
  options.size = 8 << 20;
  options.slab_bytes = 1 << 20;
  options.most_queued_bytes = kWhole;
  struct rocegw_memory_session* session = NULL;
  char why[200] = "";
  if (rocegw_memory_open(&options, sizeof options, &session, why, sizeof why) != 0) {
    fprintf(stderr, "far_blocks: %s\n", why);
    return 2;
  }
  struct rocegw_memory_blocks* blocks = NULL;
  int wrong = rocegw_memory_blocks_open(session, 0, options.size, kBlock, &blocks) != 0;
  static char value[kValue], back[kValue];
  for (int number = 0; number < kValues && !wrong; number++) {
    char key[20];
    const size_t key_size = (size_t)snprintf(key, sizeof key, "%d", number);
    memset(value, number, sizeof value);
    const long long put = rocegw_memory_blocks_put_wait(blocks, key, key_size, value, sizeof value);
    const long long got = rocegw_memory_blocks_get_wait(blocks, key, key_size, back, sizeof back);
    wrong = put != kValue || got != kValue || memcmp(value, back, sizeof value) != 0;
    if (wrong) printf("value %d: put %lld, got %lld\n", number, put, got);
  }
  if (blocks != NULL) rocegw_memory_blocks_close(blocks);
  rocegw_memory_close(session);
  return wrong;
}
