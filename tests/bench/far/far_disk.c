/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions of the blocks of a space with a disk copy, for tests that kill everything.
 *
 *   far_disk write --donor ADDRESS[,PORT] ... --disk-copy FILE [--size BYTES] [--replicas N]
 *   far_disk verify LOWEST --donor ADDRESS[,PORT] ... --disk-copy FILE [--size BYTES] ...
 *
 * `write` writes version 1 of all blocks in a scattered order, flushes, prints "flushed 1", and
 * goes on with version 2, until it is killed. A write or flush may fail with EIO while neither a
 * donor nor the disk takes it: it is tried again, for a minute at most. `verify` begins with what
 * the file holds and checks that every block is whole, and has version LOWEST or the next one. It
 * prints the versions that it found. Exit status: 0, 1 wrong bytes or an unexpected error, 2 no
 * session. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/far/session/api/rocegw_memory.h"

enum { kMostDonors = 8, kBlock = 4096, kTries = 600 };

static struct rocegw_memory_session* session;
static uint64_t blocks;

static uint64_t word(uint64_t block, uint64_t version) {
  return block * 0x9E3779B97F4A7C15u + version;
}

static void check(int error, const char* what, uint64_t at) {
  if (error == 0) return;
  fprintf(stderr, "far_disk: %s %lu: %s\n", what, at, strerror(-error));
  exit(1);
}

static void write_versions(void) {
  uint64_t buffer[kBlock / 8];
  for (uint64_t version = 1;; version++) {
    for (uint64_t each = 0; each < blocks; each++) {
      /* An odd factor: each block once. The number of blocks is a power of two. */
      const uint64_t block = each * 40503 % blocks;
      for (int at = 0; at < kBlock / 8; at++) buffer[at] = word(block, version);
      int error = -EIO;
      for (int tries = 0; error == -EIO && tries < kTries; tries++) {
        if (tries != 0) usleep(100000);
        error = rocegw_memory_write_wait(session, block * kBlock, buffer, kBlock);
      }
      check(error, "write of block", block);
    }
    int error = -EIO;
    for (int tries = 0; error == -EIO && tries < kTries; tries++) {
      if (tries != 0) usleep(100000);
      error = rocegw_memory_flush_wait(session);
    }
    check(error, "flush of version", version);
    printf("flushed %lu\n", version);
    fflush(stdout);
  }
}

static int verify(uint64_t lowest) {
  uint64_t buffer[kBlock / 8], found[2] = {0, 0};
  for (uint64_t block = 0; block < blocks; block++) {
    check(rocegw_memory_read_wait(session, block * kBlock, buffer, kBlock), "read of block", block);
    const uint64_t version = buffer[0] == 0 ? 0 : buffer[0] - word(block, 0);
    bool whole = version == lowest || version == lowest + 1;
    for (int at = 1; at < kBlock / 8; at++) whole = whole && buffer[at] == buffer[0];
    if (!whole) {
      fprintf(stderr, "far_disk: block %lu has version %lu, not %lu or the next one\n", block,
              version, lowest);
      return 1;
    }
    found[version - lowest]++;
  }
  printf("verified: %lu blocks of version %lu, %lu of the next one\n", found[0], lowest, found[1]);
  return 0;
}

int main(int argc, char** argv) {
  struct rocegw_memory_donor donors[kMostDonors];
  struct rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  options.donors = donors;
  options.size = (uint64_t)8 << 20;
  options.slab_bytes = (uint64_t)1 << 20;
  options.timeout_ms = 2000;
  uint64_t lowest = 0;
  int at = 1;
  const bool verifies = at < argc && strcmp(argv[at], "verify") == 0;
  at++;
  if (verifies && at < argc) lowest = strtoull(argv[at++], NULL, 0);
  for (; at + 1 < argc; at += 2) {
    char* value = argv[at + 1];
    if (strcmp(argv[at], "--donor") == 0 && options.donor_count < kMostDonors) {
      char* port = strchr(value, ',');
      if (port != NULL) *port++ = 0;
      donors[options.donor_count++] = (struct rocegw_memory_donor){value, port};
    } else if (strcmp(argv[at], "--disk-copy") == 0) {
      options.disk_copy = value;
    } else if (strcmp(argv[at], "--size") == 0) {
      options.size = strtoull(value, NULL, 0);
    } else if (strcmp(argv[at], "--replicas") == 0) {
      options.replicas = (uint32_t)strtoul(value, NULL, 0);
    } else {
      fprintf(stderr, "far_disk: %s\n", argv[at]);
      return 2;
    }
  }
  options.disk_copy_keep = verifies;
  char why[256] = "";
  const int error = rocegw_memory_open(&options, sizeof options, &session, why, sizeof why);
  if (error != 0) {
    fprintf(stderr, "far_disk: no session: %s (%s)\n", why, strerror(-error));
    return 2;
  }
  printf("ready\n");
  fflush(stdout);
  blocks = options.size / kBlock;
  if (!verifies) write_versions();
  const int status = verify(lowest);
  rocegw_memory_close(session);
  return status;
}
