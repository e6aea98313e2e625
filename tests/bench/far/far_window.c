/* SPDX-License-Identifier: Apache-2.0
 *
 * Load on a window onto remote memory: two threads load from and store to random pages, each those
 * that it owns, and check what they load. Then the pages are synchronized and compared with what
 * the donors have, system calls touch the window, and loads are timed. Prints "ready" when the
 * window is open, "halfway" after half of the steps, and one line of JSON at the end.
 *
 *   far_window --donor ADDRESS[,PORT] ... [--replicas N] [--size BYTES] [--slab BYTES]
 *              [--resident BYTES] [--steps N] [--timeout MS] [--pause] [--expect-lost]
 *              [--faulting-thread]
 *
 * --pause waits for SIGUSR1 when it is halfway. --expect-lost: a load may raise SIGBUS; the page is
 * not used any more then, and nothing is timed. --faulting-thread: the threads handle their faults
 * themselves, and system calls are not used with pages that are not resident. Exit status: 0, 1
 * wrong bytes or an error, 2 no window. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gateway/far/session/api/rocegw_memory.h"
#include "gateway/far/session/api/rocegw_memory_map.h"

enum { kMostDonors = 8, kThreads = 2, kPage = 4096, kWords = kPage / 8, kTimed = 2000 };

static uint8_t* base;
static uint64_t pages, steps = 20000;
static bool pause_halfway, expect_lost, in_thread;
static uint32_t* versions;
static bool* is_lost;
static atomic_uint_fast64_t wrong, lost;
static pthread_barrier_t barrier;
static _Thread_local sigjmp_buf on_bus_error;

static void handle_bus_error(int number) {
  (void)number;
  siglongjmp(on_bus_error, 1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t tag(uint64_t page, uint32_t version) {
  return version == 0 ? 0 : (page << 32) + version;
}

/* The first and the last word of a page say where it belongs; the others are zero. */
static bool is_right(const volatile uint64_t* words, uint64_t page) {
  const uint64_t expected = tag(page, versions[page]);
  return words[0] == expected && words[kWords - 1] == expected && words[kWords / 2] == 0;
}

static void step(uint64_t page, bool store) {
  volatile uint64_t* words = (volatile uint64_t*)(base + page * kPage);
  if (is_lost[page]) return;
  if (sigsetjmp(on_bus_error, 1) != 0) {
    is_lost[page] = true;
    lost++;
    return;
  }
  if (!is_right(words, page)) wrong++;
  if (!store) return;
  const uint64_t stored = tag(page, ++versions[page]);
  words[0] = stored;
  words[kWords - 1] = stored;
}

static void* work(void* argument) {
  const uint64_t thread = (uint64_t)(uintptr_t)argument;
  unsigned seed = (unsigned)thread + 1;
  for (uint64_t number = 0; number < steps; number++) {
    if (number == steps / 2) {
      pthread_barrier_wait(&barrier);
      pthread_barrier_wait(&barrier);
    }
    const uint64_t page = (uint64_t)rand_r(&seed) % (pages / kThreads) * kThreads + thread;
    step(page, rand_r(&seed) % 2 == 0);
  }
  return NULL;
}

static void wait_halfway(void) {
  pthread_barrier_wait(&barrier);
  printf("halfway\n");
  fflush(stdout);
  if (pause_halfway) {
    sigset_t wanted;
    int number = 0;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    sigwait(&wanted, &number);
  }
  pthread_barrier_wait(&barrier);
}

/* What the donors have is what was stored. */
static void compare_donors(struct rocegw_memory_session* session) {
  static uint64_t words[kWords];
  for (uint64_t page = 0; page < pages; page++) {
    const int error = rocegw_memory_read_wait(session, page * kPage, words, kPage);
    if (is_lost[page]) continue;
    if (error == -EIO && expect_lost) {
      lost++;
    } else if (error != 0 || !is_right(words, page)) {
      wrong++;
    }
  }
}

/* The kernel reads and writes pages that are not resident. */
static void use_system_calls(void) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  for (uint64_t page = 0; page + 1 < pages; page += pages / 16) {
    static uint64_t words[kWords];
    if (write(ends[1], base + page * kPage, kPage) != kPage ||
        read(ends[0], words, kPage) != kPage || !is_right(words, page)) {
      wrong++;
    }
    const uint64_t stored = tag(page, ++versions[page]);
    words[0] = words[kWords - 1] = stored;
    if (write(ends[1], words, kPage) != kPage ||
        read(ends[0], base + page * kPage, kPage) != kPage) {
      wrong++;
    }
    step(page, false);
  }
  close(ends[0]);
  close(ends[1]);
}

static int compare(const void* one, const void* other) {
  const uint64_t a = *(const uint64_t*)one, b = *(const uint64_t*)other;
  return a < b ? -1 : a > b;
}

struct times {
  double fault_p50_us, fault_p99_us, read_p50_us, scan_mib_per_s;
};

static struct times measure(struct rocegw_memory_session* session) {
  static uint64_t faults[kTimed], reads[kTimed];
  static uint8_t buffer[kPage];
  struct times times;
  unsigned seed = 1;
  uint64_t begin = now_ns();
  for (uint64_t page = 0; page < pages; page++) step(page, false);
  times.scan_mib_per_s = (double)pages * kPage / 1048576 / ((double)(now_ns() - begin) / 1e9);
  size_t count = 0;
  for (int number = 0; number < kTimed; number++) {
    const uint64_t page = (uint64_t)rand_r(&seed) % pages;
    begin = now_ns();
    step(page, false);
    const uint64_t took = now_ns() - begin;
    if (took > 10000) faults[count++] = took; /* others were resident */
    begin = now_ns();
    if (rocegw_memory_read_wait(session, page * kPage, buffer, kPage) != 0) wrong++;
    reads[number] = now_ns() - begin;
  }
  qsort(faults, count, sizeof *faults, compare);
  qsort(reads, kTimed, sizeof *reads, compare);
  times.fault_p50_us = count != 0 ? (double)faults[count / 2] / 1e3 : 0;
  times.fault_p99_us = count != 0 ? (double)faults[count * 99 / 100] / 1e3 : 0;
  times.read_p50_us = (double)reads[kTimed / 2] / 1e3;
  return times;
}

int main(int argc, char** argv) {
  static const struct option names[] = {{"donor", required_argument, NULL, 'd'},
                                        {"replicas", required_argument, NULL, 'r'},
                                        {"size", required_argument, NULL, 's'},
                                        {"slab", required_argument, NULL, 'l'},
                                        {"resident", required_argument, NULL, 'm'},
                                        {"steps", required_argument, NULL, 'n'},
                                        {"timeout", required_argument, NULL, 't'},
                                        {"pause", no_argument, NULL, 'p'},
                                        {"expect-lost", no_argument, NULL, 'e'},
                                        {"faulting-thread", no_argument, NULL, 'f'},
                                        {NULL, 0, NULL, 0}};
  struct rocegw_memory_donor donors[kMostDonors];
  struct rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  options.donors = donors;
  options.size = (uint64_t)16 << 20;
  uint64_t resident = (uint64_t)4 << 20;
  for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    const uint64_t value = optarg != NULL ? strtoull(optarg, NULL, 0) : 0;
    switch (name) {
      case 'd':
        if (options.donor_count == kMostDonors) return 2;
        donors[options.donor_count].host = strtok(optarg, ",");
        donors[options.donor_count++].port = strtok(NULL, ",");
        break;
      case 'r':
        options.replicas = (uint32_t)value;
        break;
      case 's':
        options.size = value;
        break;
      case 'l':
        options.slab_bytes = value;
        break;
      case 'm':
        resident = value;
        break;
      case 'n':
        steps = value;
        break;
      case 't':
        options.timeout_ms = (uint32_t)value;
        break;
      case 'p':
        pause_halfway = true;
        break;
      case 'e':
        expect_lost = true;
        break;
      case 'f':
        in_thread = true;
        break;
      default:
        return 2;
    }
  }
  sigset_t halfway_signal;
  sigemptyset(&halfway_signal);
  sigaddset(&halfway_signal, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &halfway_signal, NULL);
  /* The library hands on to this handler what is not its own. */
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle_bus_error;
  if (expect_lost) sigaction(SIGBUS, &action, NULL);
  options.pool_bytes = 4 << 20;
  const struct rocegw_memory_map_options map_options = {
      resident, in_thread ? ROCEGW_MEMORY_MAP_FAULTING_THREAD : ROCEGW_MEMORY_MAP_HANDLER_THREAD};
  struct rocegw_memory_session* session;
  struct rocegw_memory_map* window;
  char why[256] = "";
  if (rocegw_memory_open(&options, sizeof options, &session, why, sizeof why) != 0 ||
      rocegw_memory_map_open_with(session, 0, options.size, &map_options, sizeof map_options,
                                  &window, why, sizeof why) != 0) {
    fprintf(stderr, "far_window: %s\n", why);
    return 2;
  }
  base = rocegw_memory_map_address(window);
  pages = options.size / kPage;
  versions = calloc(pages, sizeof *versions);
  is_lost = calloc(pages, sizeof *is_lost);
  printf("ready\n");
  fflush(stdout);
  pthread_barrier_init(&barrier, NULL, kThreads + 1);
  pthread_t threads[kThreads];
  for (uintptr_t number = 0; number < kThreads; number++) {
    pthread_create(&threads[number], NULL, work, (void*)number);
  }
  wait_halfway();
  for (int number = 0; number < kThreads; number++) pthread_join(threads[number], NULL);
  int errors = rocegw_memory_map_sync(window) != 0 && !expect_lost;
  compare_donors(session);
  struct times times = {0, 0, 0, 0};
  if (!expect_lost) {
    if (!in_thread) use_system_calls();
    times = measure(session);
  }
  struct rocegw_memory_map_statistics counts;
  rocegw_memory_map_get_statistics(window, &counts, sizeof counts);
  errors += rocegw_memory_map_close(window) != 0 && !expect_lost;
  compare_donors(session);
  printf("{\"pages\": %" PRIu64 ", \"resident\": %" PRIu64 ", \"faults\": %" PRIu64
         ", \"read\": %" PRIu64 ", \"evicted\": %" PRIu64 ", \"written_back\": %" PRIu64
         ", \"write_back_failures\": %" PRIu64 ", \"reactivated\": %" PRIu64
         ", \"fault_p50_us\": %.1f, \"fault_p99_us\": %.1f, \"read_p50_us\": %.1f, "
         "\"scan_mib_per_s\": %.1f, \"lost\": %" PRIu64 ", \"wrong\": %" PRIu64
         ", \"errors\": %d}\n",
         counts.pages, counts.resident, counts.faults, counts.read, counts.evicted,
         counts.written_back, counts.write_back_failures, counts.reactivated, times.fault_p50_us,
         times.fault_p99_us, times.read_p50_us, times.scan_mib_per_s, (uint64_t)lost,
         (uint64_t)wrong, errors);
  rocegw_memory_close(session);
  return wrong != 0 || errors != 0 ? 1 : 0;
}
