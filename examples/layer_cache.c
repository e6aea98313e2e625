/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache of the layers of sequences in the memory of other hosts, as an inference server keeps the
 * keys and values of attention: for each layer of a sequence, all its blocks are got at the same
 * time, and the next layer is got when they are there. A block that the pool does not have is made
 * anew and put. Shows rocegw_memory_blocks.h; every byte that is got is checked.
 *
 *   layer_cache --donor ADDRESS[,PORT] ... [--replicas N] [--size BYTES] [--slab BYTES]
 *               [--block BYTES] [--layers N] [--blocks N] [--sequences N] [--passes N]
 *               [--timeout MS] [--secret FILE [--path endpoints|queue-pairs]] [--linger]
 *
 * --pool: instead of --donor, with --secret: a block pool of the fleet, of the tenant --tenant,
 * whose donors the agent names that answers in the folder --donors-dir.
 *
 * --secret: the donors run `rocegw-memory blocks`, and processes that have the same secret share
 * the pool: what one of them has put, the others find. Then the donors choose size and block.
 * --blocks: of each layer. --linger: says "lingers" behind the last pass, and goes on at SIGUSR1.
 * Prints "ready" after the first pass over all sequences, and one line of JSON at the end: time of
 * a layer's transfer (average, p50, p99), bytes per second, hits and misses. Exit status: 0, 1
 * wrong bytes or an error, 2 no session. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <rocegw/rocegw_memory.h>
#include <rocegw/rocegw_memory_blocks.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMostDonors = 8, kMostBlocks = 1024 };

struct key {
  uint32_t sequence, layer, block;
};

/* What a layer waits for. */
struct group {
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  uint32_t pending;
  int64_t results[kMostBlocks];
};

struct call {
  struct group* group;
  uint32_t number;
};

static uint64_t block_bytes = 65536;
static uint32_t layers = 16, blocks_of_layer = 16, sequences = 4, passes = 10;
static bool linger;
static struct rocegw_memory_blocks* blocks;
static uint64_t wrong, errors, made;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Every 8 bytes say where they belong. */
static uint64_t word_of(const struct key* key, uint64_t word) {
  return ((uint64_t)key->sequence << 48) ^ ((uint64_t)key->layer << 36) ^
         ((uint64_t)key->block << 24) ^ (word + 1);
}

static void make_block(const struct key* key, uint64_t* data) {
  for (uint64_t word = 0; word < block_bytes / 8; word++) data[word] = word_of(key, word);
}

static bool is_right(const struct key* key, const uint64_t* data) {
  for (uint64_t word = 0; word < block_bytes / 8; word++) {
    if (data[word] != word_of(key, word)) return false;
  }
  return true;
}

static void on_done(void* argument, int64_t result) {
  struct call* call = argument;
  struct group* group = call->group;
  pthread_mutex_lock(&group->mutex);
  group->results[call->number] = result;
  if (--group->pending == 0) pthread_cond_signal(&group->ended);
  pthread_mutex_unlock(&group->mutex);
}

/* Gets a layer, and puts what is missing. Returns how long the gets took. */
static uint64_t get_layer(uint32_t sequence, uint32_t layer, uint8_t* memory) {
  static struct group group = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}};
  static struct call calls[kMostBlocks];
  group.pending = blocks_of_layer;
  const uint64_t begin = now_ns();
  for (uint32_t block = 0; block < blocks_of_layer; block++) {
    const struct key key = {sequence, layer, block};
    calls[block] = (struct call){&group, block};
    int error = 0;
    do {
      error = rocegw_memory_blocks_get(blocks, &key, sizeof key, memory + block * block_bytes,
                                       block_bytes, on_done, &calls[block]);
    } while (error == -EAGAIN);
    if (error != 0) on_done(&calls[block], error);
  }
  pthread_mutex_lock(&group.mutex);
  while (group.pending != 0) pthread_cond_wait(&group.ended, &group.mutex);
  pthread_mutex_unlock(&group.mutex);
  const uint64_t took = now_ns() - begin;
  for (uint32_t block = 0; block < blocks_of_layer; block++) {
    const struct key key = {sequence, layer, block};
    uint64_t* data = (uint64_t*)(memory + block * block_bytes);
    const int64_t result = group.results[block];
    if (result == (int64_t)block_bytes) {
      wrong += !is_right(&key, data);
      continue;
    }
    errors += result != -ENOENT && result != -EIO;
    make_block(&key, data);
    made++;
    const int64_t put = rocegw_memory_blocks_put_wait(blocks, &key, sizeof key, data, block_bytes);
    /* The donors may have been lost a moment ago, or other processes put values of many keys at the
     * same time: the block stays missing. */
    errors += put != (int64_t)block_bytes && put != -EIO && put != -EBUSY;
  }
  return took;
}

static int compare(const void* one, const void* other) {
  const uint64_t a = *(const uint64_t*)one, b = *(const uint64_t*)other;
  return a < b ? -1 : a > b;
}

/* `memory` has room for a layer. */
static void run(uint8_t* memory) {
  const uint32_t count = passes * sequences * layers;
  uint64_t* times = calloc(count, sizeof *times);
  uint64_t total = 0;
  uint32_t taken = 0;
  if (times == NULL || memory == NULL) abort();
  for (uint32_t pass = 0; pass <= passes; pass++) {
    for (uint32_t sequence = 0; sequence < sequences; sequence++) {
      for (uint32_t layer = 0; layer < layers; layer++) {
        const uint64_t took = get_layer(sequence, layer, memory);
        if (pass == 0) continue; /* fills the pool */
        times[taken++] = took;
        total += took;
      }
    }
    if (pass == 0) {
      printf("ready\n");
      fflush(stdout);
    }
  }
  if (linger) {
    printf("lingers\n");
    fflush(stdout);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    for (int received = 0; received != SIGUSR1;) sigwait(&signals, &received);
  }
  qsort(times, taken, sizeof *times, compare);
  struct rocegw_memory_blocks_statistics statistics;
  rocegw_memory_blocks_get_statistics(blocks, &statistics, sizeof statistics);
  const double bytes = (double)taken * blocks_of_layer * (double)block_bytes;
  printf("{\"layers\": %" PRIu32 ", \"layer_bytes\": %" PRIu64
         ", \"average_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"mib_per_s\": %.1f, "
         "\"hits\": %" PRIu64 ", \"misses\": %" PRIu64 ", \"made\": %" PRIu64
         ", \"evictions\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"donors_up\": %" PRIu64
         ", \"donors_by_endpoint\": %" PRIu64 ", \"donors_lost\": %" PRIu64
         ", \"restored\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"errors\": %" PRIu64 "}\n",
         taken, blocks_of_layer * block_bytes, (double)total / taken / 1e3,
         (double)times[taken / 2] / 1e3, (double)times[(uint64_t)taken * 99 / 100] / 1e3,
         bytes / ((double)total / 1e9) / 1048576, statistics.hits, statistics.misses, made,
         statistics.evictions, statistics.lost, statistics.donors_up, statistics.donors_by_endpoint,
         statistics.donors_lost, statistics.restored, wrong, errors);
  free(times);
}

/* In the space of a session of this process. */
static int run_alone(struct rocegw_memory_options* options) {
  options->pool_bytes = blocks_of_layer * block_bytes;
  struct rocegw_memory_session* session;
  char why[256] = "";
  if (rocegw_memory_open(options, sizeof *options, &session, why, sizeof why) != 0) {
    fprintf(stderr, "layer_cache: %s\n", why);
    return 2;
  }
  if (rocegw_memory_blocks_open(session, 0, rocegw_memory_size(session), block_bytes, &blocks) !=
      0) {
    fprintf(stderr, "layer_cache: --block is a multiple of 4096, at most --size\n");
    return 2;
  }
  uint8_t* memory = rocegw_memory_alloc(session, blocks_of_layer * block_bytes);
  if (memory == NULL) abort();
  run(memory);
  rocegw_memory_free(session, memory);
  rocegw_memory_blocks_close(blocks);
  rocegw_memory_close(session);
  return 0;
}

/* In the pool that all processes with the secret share. */
static int run_shared(struct rocegw_memory_blocks_options* options, const char* secret_file) {
  static char secret[64];
  FILE* file = fopen(secret_file, "r");
  options->secret = secret;
  options->secret_bytes = file != NULL ? fread(secret, 1, sizeof secret, file) : 0;
  if (file != NULL) fclose(file);
  while (options->secret_bytes != 0 && secret[options->secret_bytes - 1] == '\n') {
    options->secret_bytes--;
  }
  char why[256] = "";
  if (rocegw_memory_blocks_join(options, sizeof *options, &blocks, why, sizeof why) != 0) {
    fprintf(stderr, "layer_cache: %s\n", why);
    return 2;
  }
  block_bytes = rocegw_memory_blocks_block_bytes(blocks);
  uint8_t* memory = malloc(blocks_of_layer * block_bytes);
  if (memory == NULL) abort();
  run(memory);
  free(memory);
  rocegw_memory_blocks_close(blocks);
  return 0;
}

int main(int argc, char** argv) {
  static const struct option names[] = {{"donor", required_argument, NULL, 'd'},
                                        {"replicas", required_argument, NULL, 'r'},
                                        {"size", required_argument, NULL, 's'},
                                        {"slab", required_argument, NULL, 'l'},
                                        {"block", required_argument, NULL, 'b'},
                                        {"layers", required_argument, NULL, 'n'},
                                        {"blocks", required_argument, NULL, 'c'},
                                        {"sequences", required_argument, NULL, 'q'},
                                        {"passes", required_argument, NULL, 'p'},
                                        {"timeout", required_argument, NULL, 't'},
                                        {"secret", required_argument, NULL, 'k'},
                                        {"path", required_argument, NULL, 'w'},
                                        {"linger", no_argument, NULL, 'i'},
                                        {"pool", required_argument, NULL, 'o'},
                                        {"tenant", required_argument, NULL, 'e'},
                                        {"donors-dir", required_argument, NULL, 'f'},
                                        {NULL, 0, NULL, 0}};
  struct rocegw_memory_donor donors[kMostDonors];
  struct rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  struct rocegw_memory_blocks_options shared = ROCEGW_MEMORY_BLOCKS_DEFAULTS;
  const char* secret_file = NULL;
  options.donors = shared.donors = donors;
  options.size = (uint64_t)64 << 20;
  for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    const uint64_t value = optarg != NULL ? strtoull(optarg, NULL, 0) : 0;
    switch (name) {
      case 'd':
        if (options.donor_count == kMostDonors) return 2;
        donors[options.donor_count].host = strtok(optarg, ",");
        donors[options.donor_count++].port = strtok(NULL, ",");
        break;
      case 'r':
        options.replicas = shared.replicas = (uint32_t)value;
        break;
      case 's':
        options.size = value;
        break;
      case 'l':
        options.slab_bytes = value;
        break;
      case 'b':
        block_bytes = value;
        break;
      case 'n':
        layers = (uint32_t)value;
        break;
      case 'c':
        blocks_of_layer = (uint32_t)value;
        break;
      case 'q':
        sequences = (uint32_t)value;
        break;
      case 'p':
        passes = (uint32_t)value;
        break;
      case 't':
        options.timeout_ms = shared.timeout_ms = (uint32_t)value;
        break;
      case 'k':
        secret_file = optarg;
        break;
      case 'w':
        shared.path = strcmp(optarg, "endpoints") == 0 ? ROCEGW_MEMORY_BLOCKS_ENDPOINTS
                                                       : ROCEGW_MEMORY_BLOCKS_QUEUE_PAIRS;
        break;
      case 'i':
        linger = true;
        break;
      case 'o':
        shared.pool = optarg;
        break;
      case 'e':
        shared.tenant = optarg;
        break;
      case 'f':
        shared.donors_dir = optarg;
        break;
      default:
        return 2;
    }
  }
  sigset_t signals; /* blocked in all threads: run waits for it */
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  if (linger) pthread_sigmask(SIG_BLOCK, &signals, NULL);
  if (blocks_of_layer == 0 || blocks_of_layer > kMostBlocks || passes * sequences * layers == 0) {
    fprintf(stderr, "layer_cache: --blocks is 1 to %d, the other numbers are not 0\n", kMostBlocks);
    return 2;
  }
  shared.donor_count = options.donor_count;
  const int status = secret_file != NULL ? run_shared(&shared, secret_file) : run_alone(&options);
  if (status != 0) return status;
  return wrong != 0 || errors != 0 ? 1 : 0;
}
