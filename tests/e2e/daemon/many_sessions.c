// SPDX-License-Identifier: Apache-2.0
// Many programs attached to a gateway, each with a queue pair, which go on after the gateway's
// restart: each waits until its device has told that it is gone, closes it and opens it again. They
// are children of one process, which prints "open", "gone" and "open again" when all have come so
// far. Usage: many_sessions PROGRAMS
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kTries = 600, kPauseMilliseconds = 100, kGoneMilliseconds = 60000 };

struct session {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
};

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

// Returns 0 while no gateway answers.
static int open_session(struct session* s) {
  int count = 0;
  struct ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == NULL || count == 0) {
    if (devices != NULL) ibv_free_device_list(devices);
    return 0;
  }
  s->context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  if (s->context == NULL) return 0;
  s->pd = ibv_alloc_pd(s->context);
  s->cq = ibv_create_cq(s->context, 16, NULL, NULL, 0);
  if (s->pd == NULL || s->cq == NULL) fail("pd or cq");
  struct ibv_qp_init_attr attributes = {
      .send_cq = s->cq,
      .recv_cq = s->cq,
      .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC};
  s->qp = ibv_create_qp(s->pd, &attributes);
  if (s->qp == NULL) fail("qp");
  return 1;
}

static void await_open(struct session* s) {
  int tries = 0;
  while (!open_session(s)) {
    if (++tries == kTries) fail("no device");
    // Nothing tells when the next gateway answers.
    poll(NULL, 0, kPauseMilliseconds);
  }
}

static void await_gone(struct session* s) {
  struct pollfd ready = {.fd = s->context->async_fd, .events = POLLIN};
  if (poll(&ready, 1, kGoneMilliseconds) != 1) fail("no event");
  struct ibv_async_event event;
  if (ibv_get_async_event(s->context, &event) != 0) fail("ibv_get_async_event");
  if (event.event_type != IBV_EVENT_DEVICE_FATAL) {
    fprintf(stderr, "event %d\n", event.event_type);
    exit(1);
  }
  ibv_ack_async_event(&event);
}

static void close_session(struct session* s) {
  ibv_destroy_qp(s->qp);
  ibv_destroy_cq(s->cq);
  ibv_dealloc_pd(s->pd);
  ibv_close_device(s->context);
}

static void tell(int pipe_end, char step) {
  if (write(pipe_end, &step, 1) != 1) fail("write");
}

static void run_program(int pipe_end) {
  struct session s;
  await_open(&s);
  tell(pipe_end, 'o');
  await_gone(&s);
  close_session(&s);
  tell(pipe_end, 'g');
  await_open(&s);
  tell(pipe_end, 'a');
  close_session(&s);
}

// Prints `what` when each of the programs has told this step. Steps of different programs may come
// in any order.
static void await_step(int pipe_end, int* counts, char step, int programs, const char* what) {
  while (counts[(int)step] < programs) {
    char told;
    if (read(pipe_end, &told, 1) != 1) {
      fprintf(stderr, "%d of %d came to \"%s\"\n", counts[(int)step], programs, what);
      exit(1);
    }
    ++counts[(int)told];
  }
  printf("%s\n", what);
}

int main(int argc, char** argv) {
  const int programs = argc == 2 ? atoi(argv[1]) : 0;
  if (programs <= 0) {
    fprintf(stderr, "usage: many_sessions PROGRAMS\n");
    return 2;
  }
  int ends[2];
  if (pipe(ends) != 0) fail("pipe");
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 0; i < programs; ++i) {
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child != 0) continue;
    close(ends[0]);
    run_program(ends[1]);
    exit(0);
  }
  close(ends[1]);
  int counts[128] = {0};
  await_step(ends[0], counts, 'o', programs, "open");
  await_step(ends[0], counts, 'g', programs, "gone");
  await_step(ends[0], counts, 'a', programs, "open again");
  int status = 0;
  for (int i = 0; i < programs; ++i) {
    int one = 0;
    if (wait(&one) < 0) fail("wait");
    if (one != 0) status = 1;
  }
  return status;
}
