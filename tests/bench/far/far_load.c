/* SPDX-License-Identifier: Apache-2.0
 *
 * Load on remote memory: threads write and read blocks with several requests in progress each, and
 * check what they read. Prints "ready" when the session is open, "done" after the last request, and
 * one line of JSON at the end.
 *
 *   far_load --donor ADDRESS[,PORT] ... [--size BYTES] [--replicas N] [--threads N] [--depth N]
 *            [--block BYTES] [--requests N] [--reads PERCENT] [--random] [--batching 0..3]
 *            [--polling 0..4] [--pollers N] [--window BYTES] [--copy-limit BYTES] [--slab BYTES]
 *            [--timeout MS] [--tenant NAME] [--from-pool] [--pause] [--settle] [--expect-lost]
 *            [--disk-copy FILE] [--zipf THETA] [--rate N] [--fill]
 *
 * Each thread owns a share of the blocks, so that it knows what each must contain. --zipf draws
 * blocks by Zipf's law (as YCSB does, Gray et al. 1994, the hottest ones spread over the share). A
 * block that has a request in progress is not drawn. --rate begins requests at random moments, so
 * many per second in all (a Poisson process), whether earlier ones are done or not; latencies count
 * from the moment at which a request was due. Without it the load is a closed loop. --fill writes
 * all blocks before. --pause waits
 * for SIGUSR1 after the first half of the requests; --settle waits at the end until all replicas
 * are restored. --expect-lost: a read may fail
 * with EIO; the block is written anew then. Exit status: 0, 1 wrong bytes or an unexpected error, 2
 * no session. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "gateway/far/session/api/rocegw_memory.h"

enum { kMostDonors = 8, kMostThreads = 64, kMostDepth = 256 };

static struct {
  uint64_t block, requests;
  uint32_t threads, depth, reads;
  bool random, pause, expect_lost, settle, fill;
  double zipf; /* theta; 0: uniform */
  double rate; /* requests per second; 0: a closed loop */
} load = {.block = 4096, .requests = 20000, .threads = 4, .depth = 8, .reads = 50};

static struct rocegw_memory_session* session;
static atomic_uint_fast64_t wrong, lost, errors;
static pthread_barrier_t halfway;

struct worker;

struct slot {
  struct worker* owner;
  uint64_t block; /* number within the worker's share */
  uint8_t* buffer;
  bool is_read;
  int status;
  uint64_t started_ns, took_ns;
};

struct worker {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t done_some;
  struct slot slots[kMostDepth];
  struct slot* done[kMostDepth];
  struct slot* idle[kMostDepth];
  uint32_t done_count, idle_count;
  uint64_t first_block, blocks, seed, next;
  double zeta, zeta_of_two;
  uint32_t* version; /* of each block; 0: never written */
  bool* busy;
  uint32_t* latency_us;
  uint64_t latencies;
};

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Of (0, 1]. */
static double next_fraction(uint64_t* state) {
  return ((double)(next_random(state) >> 11) + 1) / 9007199254740992.0;
}

static double zeta(uint64_t count) {
  double sum = 0;
  for (uint64_t each = 1; each <= count; each++) sum += pow((double)each, -load.zipf);
  return sum;
}

static uint64_t draw(struct worker* worker) {
  if (load.zipf == 0) return next_random(&worker->seed) % worker->blocks;
  const double fraction = next_fraction(&worker->seed);
  const double place = fraction * worker->zeta;
  const double count = (double)worker->blocks;
  const double eta = (1 - pow(2 / count, 1 - load.zipf)) / (1 - worker->zeta_of_two / worker->zeta);
  uint64_t rank = 0;
  if (place >= 1) rank = 1;
  if (place >= worker->zeta_of_two)
    rank = (uint64_t)(count * pow(eta * fraction - eta + 1, 1 / (1 - load.zipf)));
  if (rank >= worker->blocks) rank = worker->blocks - 1;
  return rank * 0x9E3779B97F4A7C15u % worker->blocks;
}

/* Every 8 bytes say which block and version they belong to, and where they stand in it. */
static uint64_t word(uint64_t block, uint32_t version, uint64_t at) {
  return version == 0 ? 0 : (block * 0x9E3779B97F4A7C15u) ^ ((uint64_t)version << 40) ^ at;
}

static void fill(uint8_t* buffer, uint64_t block, uint32_t version) {
  uint64_t* words = (uint64_t*)buffer;
  for (uint64_t at = 0; at < load.block / 8; at++) words[at] = word(block, version, at);
}

static bool holds(const uint8_t* buffer, uint64_t block, uint32_t version) {
  const uint64_t* words = (const uint64_t*)buffer;
  for (uint64_t at = 0; at < load.block / 8; at++) {
    if (words[at] != word(block, version, at)) return false;
  }
  return true;
}

static void on_done(void* argument, int status) {
  struct slot* slot = argument;
  struct worker* worker = slot->owner;
  slot->status = status;
  slot->took_ns = now_ns() - slot->started_ns;
  pthread_mutex_lock(&worker->mutex);
  worker->done[worker->done_count++] = slot;
  pthread_cond_signal(&worker->done_some);
  pthread_mutex_unlock(&worker->mutex);
}

static void judge(struct worker* worker, struct slot* slot) {
  worker->busy[slot->block] = false;
  worker->latency_us[worker->latencies++] = (uint32_t)(slot->took_ns / 1000);
  const uint64_t block = worker->first_block + slot->block;
  if (slot->status != 0) {
    if (!load.expect_lost || slot->status != -EIO) {
      errors++;
    } else if (slot->is_read) {
      lost++;
    }
    /* Neither a failed write nor a lost block says what the block contains. */
    worker->version[slot->block] = UINT32_MAX;
  } else if (slot->is_read && worker->version[slot->block] != UINT32_MAX &&
             !holds(slot->buffer, block, worker->version[slot->block])) {
    wrong++;
  }
}

/* Waits for a request that is done, and judges it. */
static void reap(struct worker* worker) {
  pthread_mutex_lock(&worker->mutex);
  while (worker->done_count == 0) pthread_cond_wait(&worker->done_some, &worker->mutex);
  struct slot* slot = worker->done[--worker->done_count];
  pthread_mutex_unlock(&worker->mutex);
  judge(worker, slot);
  worker->idle[worker->idle_count++] = slot;
}

static void reap_all(struct worker* worker) {
  while (worker->idle_count < load.depth) reap(worker);
}

/* `due_ns`: when the request should have begun; 0: now. */
static void start(struct worker* worker, struct slot* slot, uint64_t due_ns) {
  uint64_t block;
  do {
    block = load.random || load.zipf != 0 ? draw(worker) : worker->next++ % worker->blocks;
  } while (worker->busy[block]);
  worker->busy[block] = true;
  slot->block = block;
  slot->is_read = next_random(&worker->seed) % 100 < load.reads;
  const uint32_t version = worker->version[block];
  if (version == UINT32_MAX) slot->is_read = false;
  const uint64_t offset = (worker->first_block + block) * load.block;
  if (!slot->is_read) {
    worker->version[block] = version == UINT32_MAX ? 1 : version + 1;
    fill(slot->buffer, worker->first_block + block, worker->version[block]);
  }
  slot->started_ns = due_ns != 0 ? due_ns : now_ns();
  int error;
  do {
    error = slot->is_read
                ? rocegw_memory_read(session, offset, slot->buffer, load.block, on_done, slot)
                : rocegw_memory_write(session, offset, slot->buffer, load.block, on_done, slot);
    if (error == -EAGAIN) usleep(50);
  } while (error == -EAGAIN);
  if (error != 0) {
    fprintf(stderr, "far_load: %s\n", strerror(-error));
    exit(1);
  }
}

static void sleep_until(uint64_t when_ns) {
  const struct timespec when = {(time_t)(when_ns / 1000000000), (long)(when_ns % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {
  }
}

static void* work(void* argument) {
  struct worker* worker = argument;
  const uint64_t requests = load.requests / load.threads;
  uint64_t due_ns = 0;
  if (load.rate != 0) {
    prctl(PR_SET_TIMERSLACK, 1);
    due_ns = now_ns();
  }
  for (uint64_t request = 0; request < requests; request++) {
    if (load.pause && request == requests / 2) {
      reap_all(worker);
      pthread_barrier_wait(&halfway);
      pthread_barrier_wait(&halfway);
    }
    if (load.rate != 0) {
      due_ns += (uint64_t)(-log(next_fraction(&worker->seed)) * load.threads / load.rate * 1e9);
      if (due_ns > now_ns()) sleep_until(due_ns);
    }
    if (worker->idle_count == 0) reap(worker);
    start(worker, worker->idle[--worker->idle_count], due_ns);
  }
  reap_all(worker);
  return NULL;
}

static bool prepare(struct worker* worker, uint32_t number, uint64_t blocks, bool from_pool) {
  pthread_mutex_init(&worker->mutex, NULL);
  pthread_cond_init(&worker->done_some, NULL);
  worker->blocks = blocks;
  worker->first_block = number * blocks;
  worker->seed = 88172645463325252u + number;
  if (load.zipf != 0) {
    worker->zeta = zeta(blocks);
    worker->zeta_of_two = zeta(2);
  }
  worker->version = calloc(blocks, sizeof *worker->version);
  worker->busy = calloc(blocks, sizeof *worker->busy);
  worker->latency_us = calloc(load.requests / load.threads + 1, sizeof *worker->latency_us);
  for (uint32_t each = 0; each < load.depth; each++) {
    struct slot* slot = &worker->slots[each];
    slot->owner = worker;
    slot->buffer = from_pool ? rocegw_memory_alloc(session, load.block)
                             : aligned_alloc(4096, (load.block + 4095) / 4096 * 4096);
    if (slot->buffer == NULL) return false;
    worker->idle[worker->idle_count++] = slot;
  }
  return worker->version != NULL && worker->busy != NULL && worker->latency_us != NULL;
}

/* Writes all blocks of the worker, many at a time. */
static bool fill_all(struct worker* worker) {
  const uint64_t together = ((1 << 20) + load.block - 1) / load.block;
  uint8_t* buffer = aligned_alloc(4096, (together * load.block + 4095) / 4096 * 4096);
  bool good = buffer != NULL;
  for (uint64_t block = 0; block < worker->blocks && good; block += together) {
    const uint64_t count = block + together > worker->blocks ? worker->blocks - block : together;
    for (uint64_t each = 0; each < count; each++) {
      fill(buffer + each * load.block, worker->first_block + block + each, 1);
      worker->version[block + each] = 1;
    }
    good = rocegw_memory_write_wait(session, (worker->first_block + block) * load.block, buffer,
                                    count * load.block) == 0;
  }
  free(buffer);
  return good;
}

static int compare(const void* a, const void* b) {
  const uint32_t left = *(const uint32_t*)a, right = *(const uint32_t*)b;
  return left < right ? -1 : left > right;
}

/* Waits until all replicas are restored, half a minute at most. */
static void settle(void) {
  struct rocegw_memory_statistics counts;
  for (int look = 0; look < 3000; look++) {
    rocegw_memory_get_statistics(session, &counts, sizeof counts);
    if (counts.slabs_degraded == 0) return;
    usleep(10000);
  }
}

static void report(struct worker* workers, double seconds) {
  uint64_t count = 0;
  for (uint32_t each = 0; each < load.threads; each++) count += workers[each].latencies;
  uint32_t* all = calloc(count + 1, sizeof *all);
  uint64_t at = 0;
  for (uint32_t each = 0; each < load.threads && all != NULL; each++) {
    memcpy(all + at, workers[each].latency_us, workers[each].latencies * sizeof *all);
    at += workers[each].latencies;
  }
  if (all != NULL) qsort(all, count, sizeof *all, compare);
  struct rocegw_memory_statistics counts;
  rocegw_memory_get_statistics(session, &counts, sizeof counts);
  printf(
      "{\"seconds\": %.6f, \"requests\": %lu, \"bytes\": %lu, \"p50_us\": %u, \"p99_us\": %u, "
      "\"max_us\": %u, ",
      seconds, count, count * load.block, all != NULL && count != 0 ? all[count / 2] : 0,
      all != NULL && count != 0 ? all[count * 99 / 100] : 0,
      all != NULL && count != 0 ? all[count - 1] : 0);
  printf(
      "\"operations\": %lu, \"doorbells\": %lu, \"merged\": %lu, \"copied_bytes\": %lu, "
      "\"registered\": %lu, ",
      counts.read_operations + counts.write_operations, counts.doorbells, counts.merged_requests,
      counts.copied_bytes, counts.registered_requests);
  printf(
      "\"window_refusals\": %lu, \"peak_in_flight\": %lu, \"copy_limit\": %lu, \"wakeups\": %lu, "
      "\"looks\": %lu, "
      "\"poll_cpu_s\": %.6f, ",
      counts.window_refusals, counts.peak_in_flight_bytes, counts.copy_limit_bytes,
      counts.poll_wakeups, counts.poll_looks, (double)counts.poll_cpu_ns / 1e9);
  printf(
      "\"donors\": %lu, \"donors_lost\": %lu, \"timeouts\": %lu, \"retried\": %lu, "
      "\"restored_bytes\": %lu, "
      "\"degraded\": %lu, \"lost_pages\": %lu, ",
      counts.donors_connected, counts.donors_lost, counts.donor_timeouts, counts.retried_reads,
      counts.restored_bytes, counts.slabs_degraded, counts.lost_pages);
  printf("\"disk_written\": %lu, \"disk_read\": %lu, \"disk_waits\": %lu, \"disk_missing\": %lu, ",
         counts.disk_written_bytes, counts.disk_read_bytes, counts.disk_waits,
         counts.disk_missing_pages);
  printf("\"wrong\": %lu, \"lost\": %lu, \"errors\": %lu}\n", (unsigned long)wrong,
         (unsigned long)lost, (unsigned long)errors);
  free(all);
}

int main(int argc, char** argv) {
  sigset_t go_on;
  sigemptyset(&go_on);
  sigaddset(&go_on, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &go_on, NULL);
  struct rocegw_memory_donor donors[kMostDonors];
  struct rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  options.donors = donors;
  options.size = (uint64_t)64 << 20;
  bool from_pool = false;
  for (int at = 1; at < argc; at++) {
    const char* name = argv[at];
    if (strcmp(name, "--random") == 0) {
      load.random = true;
    } else if (strcmp(name, "--pause") == 0) {
      load.pause = true;
    } else if (strcmp(name, "--expect-lost") == 0) {
      load.expect_lost = true;
    } else if (strcmp(name, "--settle") == 0) {
      load.settle = true;
    } else if (strcmp(name, "--fill") == 0) {
      load.fill = true;
    } else if (strcmp(name, "--from-pool") == 0) {
      from_pool = true;
    } else if (at + 1 == argc) {
      fprintf(stderr, "far_load: %s\n", name);
      return 2;
    } else if (strcmp(name, "--donor") == 0 && options.donor_count < kMostDonors) {
      char* port = strchr(argv[++at], ',');
      if (port != NULL) *port++ = 0;
      donors[options.donor_count++] = (struct rocegw_memory_donor){argv[at], port};
    } else if (strcmp(name, "--disk-copy") == 0) {
      options.disk_copy = argv[++at];
    } else if (strcmp(name, "--tenant") == 0) {
      options.tenant = argv[++at];
    } else if (strcmp(name, "--zipf") == 0) {
      load.zipf = strtod(argv[++at], NULL);
    } else if (strcmp(name, "--rate") == 0) {
      load.rate = strtod(argv[++at], NULL);
    } else {
      const uint64_t value = strtoull(argv[++at], NULL, 0);
      if (strcmp(name, "--size") == 0)
        options.size = value;
      else if (strcmp(name, "--replicas") == 0)
        options.replicas = (uint32_t)value;
      else if (strcmp(name, "--slab") == 0)
        options.slab_bytes = value;
      else if (strcmp(name, "--window") == 0)
        options.window_bytes = value;
      else if (strcmp(name, "--copy-limit") == 0)
        options.copy_limit_bytes = value;
      else if (strcmp(name, "--batching") == 0)
        options.batching = (uint32_t)value;
      else if (strcmp(name, "--polling") == 0)
        options.polling = (uint32_t)value;
      else if (strcmp(name, "--pollers") == 0)
        options.pollers = (uint32_t)value;
      else if (strcmp(name, "--timeout") == 0)
        options.timeout_ms = (uint32_t)value;
      else if (strcmp(name, "--threads") == 0 && value <= kMostThreads)
        load.threads = (uint32_t)value;
      else if (strcmp(name, "--depth") == 0 && value <= kMostDepth)
        load.depth = (uint32_t)value;
      else if (strcmp(name, "--block") == 0)
        load.block = value;
      else if (strcmp(name, "--requests") == 0)
        load.requests = value;
      else if (strcmp(name, "--reads") == 0)
        load.reads = (uint32_t)value;
      else {
        fprintf(stderr, "far_load: %s\n", name);
        return 2;
      }
    }
  }
  if (from_pool)
    options.pool_bytes = (uint64_t)load.threads * load.depth * ((load.block + 4095) / 4096 * 4096);
  char why[256] = "";
  const int error = rocegw_memory_open(&options, sizeof options, &session, why, sizeof why);
  if (error != 0) {
    fprintf(stderr, "far_load: no session: %s (%s)\n", why, strerror(-error));
    return 2;
  }
  printf("ready\n");
  fflush(stdout);
  const uint64_t blocks = rocegw_memory_size(session) / load.block / load.threads;
  struct worker* workers = calloc(load.threads, sizeof *workers);
  pthread_barrier_init(&halfway, NULL, load.threads + 1);
  for (uint32_t each = 0; each < load.threads; each++) {
    if (workers == NULL || blocks <= load.depth ||
        !prepare(&workers[each], each, blocks, from_pool)) {
      fprintf(stderr, "far_load: too many threads or too large blocks\n");
      return 2;
    }
    if (load.fill && !fill_all(&workers[each])) {
      fprintf(stderr, "far_load: not all blocks could be written\n");
      return 1;
    }
  }
  const uint64_t begin = now_ns();
  for (uint32_t each = 0; each < load.threads; each++) {
    pthread_create(&workers[each].thread, NULL, work, &workers[each]);
  }
  if (load.pause) {
    pthread_barrier_wait(&halfway);
    printf("halfway\n");
    fflush(stdout);
    int number = 0;
    sigwait(&go_on, &number);
    pthread_barrier_wait(&halfway);
  }
  for (uint32_t each = 0; each < load.threads; each++) pthread_join(workers[each].thread, NULL);
  const double seconds = (double)(now_ns() - begin) / 1e9;
  printf("done\n");
  fflush(stdout);
  if (load.settle) settle();
  report(workers, seconds);
  rocegw_memory_close(session);
  return wrong != 0 || errors != 0;
}
