/* SPDX-License-Identifier: Apache-2.0
 *
 * Transfer of a KV cache from a host that prefills to one that decodes, as disaggregated inference
 * does it: for each request, each layer's keys and values are written into the other host's paged
 * cache by RDMA WRITE as soon as the layer is computed, and the last WRITE carries the number of
 * the request. Both caches may be in the memory of a GPU.
 *
 *   kv_transfer decode --address A --port P [--memory KIND] [options]
 *   kv_transfer prefill --address A --port P [--memory KIND] [options]
 *
 *   --memory host|cuda|cuda-shared|hip      where the cache is (host)
 *   --layers N --tokens N --block-tokens N  of a request (32, 512, 16)
 *   --token-bytes N                         of a token in a layer, keys and values together (4096)
 *   --requests N                            (20), not for decode
 *
 * Options but --memory and --requests are the same at both ends. Blocks of the decoder's cache are
 * taken in a scattered order. The decoder looks at every byte. Prints a line of JSON at the end:
 * time of a request's transfer, from its first WRITE to the decoder's answer (average, p50, p99),
 * and bytes per second. Exit status: 0, 1 wrong bytes or an error, 2 no memory or no connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "examples/kv_memory.h"

enum { kDepth = 128, kScattered = 7919 };
/* Immediate data: number of the request, and this for the last one. */
#define LAST_REQUEST UINT32_C(0x80000000)

/* What the decoder says about its cache, and after each request. */
struct word {
  uint64_t address, bytes;
  uint32_t rkey, good;
};

static uint32_t layers = 32, tokens = 512, block_tokens = 16, token_bytes = 4096, requests = 20;
static const char *kind = "host", *address, *port = "18555";
static uint32_t blocks, block_bytes; /* of a layer; of a block */

static struct kv_memory* cache;
static struct rdma_cm_id* id;
static struct ibv_mr *cache_mr, *word_mr;
static struct word* word;

static int fail(const char* what) {
  fprintf(stderr, "kv_transfer: %s: %s\n", what, strerror(errno));
  return 1;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t cache_bytes(void) { return (uint64_t)layers * blocks * block_bytes; }

/* Place of a block in the decoder's cache: the pages of a request are wherever there was room. */
static uint64_t scattered(uint32_t request, uint64_t block) {
  const uint64_t all = (uint64_t)layers * blocks;
  return (block * kScattered + request * 31) % all * block_bytes;
}

/* Every 8 bytes say where they belong. */
static void fill(uint64_t* words, uint32_t request, uint64_t block) {
  for (uint32_t i = 0; i < block_bytes / 8; ++i)
    words[i] = ((uint64_t)request << 48) ^ (block << 20) ^ i ^ 0x5851F42D4C957F2D;
}

static int wait_send(uint32_t* pending, uint32_t most) {
  struct ibv_wc wc;
  while (*pending > most) {
    if (rdma_get_send_comp(id, &wc) < 0) return fail("completion of a WRITE");
    if (wc.status != IBV_WC_SUCCESS) {
      fprintf(stderr, "kv_transfer: a WRITE ended with %s\n", ibv_wc_status_str(wc.status));
      return 1;
    }
    --*pending;
  }
  return 0;
}

/* Waits for the completion of a receive, or for the end of the connection: a peer that dies while
 * nothing is sent to it shows by an event alone. Returns 0, or -1 with errno. */
static int get_recv_comp(struct ibv_wc* wc) {
  for (;;) {
    const int found = ibv_poll_cq(id->recv_cq, 1, wc);
    if (found != 0) return found < 0 ? -1 : 0;
    if (ibv_req_notify_cq(id->recv_cq, 0) != 0) return -1;
    /* One that came before the request. */
    const int late = ibv_poll_cq(id->recv_cq, 1, wc);
    if (late != 0) return late < 0 ? -1 : 0;
    struct pollfd wait[2] = {{id->recv_cq_channel->fd, POLLIN, 0}, {id->channel->fd, POLLIN, 0}};
    if (poll(wait, 2, -1) < 0 && errno != EINTR) return -1;
    if (wait[0].revents & POLLIN) {
      struct ibv_cq* cq;
      void* context;
      if (ibv_get_cq_event(id->recv_cq_channel, &cq, &context) != 0) return -1;
      ibv_ack_cq_events(cq, 1);
    } else if (wait[1].revents & POLLIN) {
      errno = ECONNRESET;
      return -1;
    }
  }
}

/* Waits for the decoder's word. */
static int wait_word(const char* what) {
  struct ibv_wc wc;
  if (get_recv_comp(&wc) < 0) return fail(what);
  if (wc.status == IBV_WC_SUCCESS) return 0;
  fprintf(stderr, "kv_transfer: %s: %s\n", what, ibv_wc_status_str(wc.status));
  return 1;
}

static int transfer(uint32_t request, uint64_t remote, uint32_t rkey) {
  uint32_t pending = 0;
  const uint64_t all = (uint64_t)layers * blocks;
  for (uint64_t block = 0; block < all; ++block) {
    struct ibv_sge sge = {(uintptr_t)kv_memory_address(cache) + block * block_bytes, block_bytes,
                          cache_mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad;
    wr.opcode = block + 1 == all ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    wr.imm_data = htonl(request + 1 == requests ? request | LAST_REQUEST : request);
    wr.wr.rdma.remote_addr = remote + scattered(request, block);
    wr.wr.rdma.rkey = rkey;
    if (wait_send(&pending, kDepth - 1) != 0) return 1;
    if ((errno = ibv_post_send(id->qp, &wr, &bad)) != 0) return fail("ibv_post_send");
    ++pending;
  }
  return wait_send(&pending, 0);
}

static int compare(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

static int prefill(void) {
  uint64_t* times = calloc(requests, sizeof *times);
  uint64_t* block_words = malloc(block_bytes);
  uint64_t sum = 0;
  if (times == NULL || block_words == NULL) return fail("memory");
  if (wait_word("the decoder's cache") != 0) return 1;
  const struct word remote = *word;
  if (remote.bytes != cache_bytes()) {
    fprintf(stderr, "kv_transfer: the decoder has other options\n");
    return 1;
  }
  for (uint32_t request = 0; request < requests; ++request) {
    for (uint64_t block = 0; block < (uint64_t)layers * blocks; ++block) {
      fill(block_words, request, block);
      if (!kv_memory_write(cache, block * block_bytes, block_words, block_bytes)) {
        fprintf(stderr, "kv_transfer: the driver does not write to its memory\n");
        return 1;
      }
    }
    if (rdma_post_recv(id, word, word, sizeof *word, word_mr) != 0) return fail("rdma_post_recv");
    const uint64_t begun = now_ns();
    if (transfer(request, remote.address, remote.rkey) != 0) return 1;
    if (wait_word("the decoder's answer") != 0) return 1;
    times[request] = now_ns() - begun;
    sum += times[request];
    if (word->good != request + 1) {
      fprintf(stderr, "kv_transfer: request %" PRIu32 " arrived with other bytes\n", request);
      return 1;
    }
  }
  qsort(times, requests, sizeof *times, compare);
  printf("{\"memory\": \"%s\", \"requests\": %" PRIu32 ", \"request_bytes\": %" PRIu64
         ", \"average_ms\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"gbit_per_second\": %.3f}\n",
         kind, requests, cache_bytes(), (double)sum / requests / 1e6,
         (double)times[requests / 2] / 1e6, (double)times[(requests - 1) * 99 / 100] / 1e6,
         (double)cache_bytes() * 8 * requests / (double)sum);
  return 0;
}

/* Looks at all blocks of a request. */
static int check(uint32_t request) {
  uint64_t* wanted = malloc(block_bytes);
  uint64_t* found = malloc(block_bytes);
  int wrong = wanted == NULL || found == NULL;
  for (uint64_t block = 0; !wrong && block < (uint64_t)layers * blocks; ++block) {
    fill(wanted, request, block);
    wrong = !kv_memory_read(cache, scattered(request, block), found, block_bytes) ||
            memcmp(wanted, found, block_bytes) != 0;
  }
  free(wanted);
  free(found);
  return wrong;
}

static int answer(uint32_t good) {
  struct ibv_wc wc;
  word->good = good;
  if (rdma_post_send(id, NULL, word, sizeof *word, word_mr, IBV_SEND_SIGNALED) != 0)
    return fail("rdma_post_send");
  if (rdma_get_send_comp(id, &wc) < 0) return fail("completion of an answer");
  return wc.status != IBV_WC_SUCCESS;
}

static int decode(void) {
  *word = (struct word){(uintptr_t)kv_memory_address(cache), cache_bytes(), cache_mr->rkey, 0};
  /* The receive of a request's last WRITE is there before the other end may send it. */
  static char nothing[8];
  struct ibv_mr* nothing_mr = rdma_reg_msgs(id, nothing, sizeof nothing);
  if (nothing_mr == NULL) return fail("rdma_reg_msgs");
  for (uint32_t next = 0;; ++next) {
    struct ibv_wc wc;
    if (rdma_post_recv(id, NULL, nothing, sizeof nothing, nothing_mr) != 0)
      return fail("rdma_post_recv");
    if (answer(next) != 0) return 1;
    if (get_recv_comp(&wc) < 0) return fail("completion of a request");
    const uint32_t told = ntohl(wc.imm_data);
    if (wc.status != IBV_WC_SUCCESS || (told & ~LAST_REQUEST) != next) {
      fprintf(stderr, "kv_transfer: a request ended with %s\n", ibv_wc_status_str(wc.status));
      return 1;
    }
    if (check(next) != 0) {
      fprintf(stderr, "kv_transfer: request %" PRIu32 " has other bytes\n", next);
      return 1;
    }
    if ((told & LAST_REQUEST) != 0) return answer(next + 1);
  }
}

static int make_regions(void) {
  cache_mr = ibv_reg_mr(id->pd, kv_memory_address(cache), cache_bytes(),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (cache_mr == NULL) return fail("ibv_reg_mr of the cache");
  word = calloc(1, sizeof *word);
  word_mr = word == NULL ? NULL : rdma_reg_msgs(id, word, sizeof *word);
  return word_mr == NULL ? fail("rdma_reg_msgs") : 0;
}

/* Connects, with the regions made before. Returns 0, or an exit status. */
static int connect_as(int passive) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
                                .ai_flags = passive ? RAI_PASSIVE : 0};
  struct ibv_qp_init_attr attr = {
      .cap = {kDepth, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 0};
  struct rdma_addrinfo* found = NULL;
  struct rdma_cm_id* listener = NULL;
  if (rdma_getaddrinfo(address, port, &hints, &found) != 0) return fail("rdma_getaddrinfo"), 2;
  if (passive) {
    if (rdma_create_ep(&listener, found, NULL, &attr) != 0) return fail("rdma_create_ep"), 2;
    if (rdma_listen(listener, 1) != 0) return fail("rdma_listen"), 2;
    printf("ready\n");
    fflush(stdout);
    if (rdma_get_request(listener, &id) != 0) return fail("rdma_get_request"), 2;
  } else if (rdma_create_ep(&id, found, NULL, &attr) != 0) {
    return fail("rdma_create_ep"), 2;
  }
  if (make_regions() != 0) return 1;
  if (passive) return rdma_accept(id, NULL) != 0 ? (fail("rdma_accept"), 2) : 0;
  if (rdma_post_recv(id, word, word, sizeof *word, word_mr) != 0) return fail("rdma_post_recv");
  return rdma_connect(id, NULL) != 0 ? (fail("rdma_connect"), 2) : 0;
}

static int usage(void) {
  fprintf(stderr, "usage: kv_transfer decode|prefill --address A [--port P] [--memory KIND] ...\n");
  return 2;
}

int main(int argc, char** argv) {
  static const struct option options[] = {
      {"address", 1, NULL, 'a'},  {"port", 1, NULL, 'p'},        {"memory", 1, NULL, 'm'},
      {"layers", 1, NULL, 'l'},   {"tokens", 1, NULL, 't'},      {"block-tokens", 1, NULL, 'b'},
      {"requests", 1, NULL, 'r'}, {"token-bytes", 1, NULL, 'k'}, {NULL, 0, NULL, 0}};
  if (argc < 2) return usage();
  const int passive = strcmp(argv[1], "decode") == 0;
  if (!passive && strcmp(argv[1], "prefill") != 0) return usage();
  optind = 2;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (option) {
      case 'a':
        address = optarg;
        break;
      case 'p':
        port = optarg;
        break;
      case 'm':
        kind = optarg;
        break;
      case 'l':
        layers = (uint32_t)strtoul(optarg, NULL, 10);
        break;
      case 't':
        tokens = (uint32_t)strtoul(optarg, NULL, 10);
        break;
      case 'b':
        block_tokens = (uint32_t)strtoul(optarg, NULL, 10);
        break;
      case 'r':
        requests = (uint32_t)strtoul(optarg, NULL, 10);
        break;
      case 'k':
        token_bytes = (uint32_t)strtoul(optarg, NULL, 10);
        break;
      default:
        return usage();
    }
  }
  if (address == NULL || layers == 0 || tokens == 0 || block_tokens == 0 || token_bytes % 8 != 0 ||
      token_bytes == 0 || requests == 0 || requests >= LAST_REQUEST ||
      block_tokens > UINT32_MAX / token_bytes ||
      (uint64_t)layers * tokens > UINT32_MAX / kScattered) {
    return usage();
  }
  block_bytes = block_tokens * token_bytes;
  blocks = (tokens + block_tokens - 1) / block_tokens;
  /* Blocks are scattered by a prime number, which must not divide their number. */
  if ((uint64_t)layers * blocks % kScattered == 0) return usage();
  cache = kv_memory_make(kind, cache_bytes());
  if (cache == NULL) return 2;
  int result = connect_as(passive);
  if (result == 0) result = passive ? decode() : prefill();
  if (id != NULL && id->qp != NULL) (void)rdma_disconnect(id);
  return result;
}
