/* SPDX-License-Identifier: Apache-2.0
 * exit_connected ADDRESS PORT HOW: connects a queue pair by rdma_cm, which rping's server will
 * take, and ends as HOW says: `return` from main, `exit` in a handler of its own registered behind
 * the first use of verbs, or `_exit`. Nothing is disconnected or destroyed. */
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rdma_cm_id *id;

/* The gateway must still be there for handlers of the program that come later than it. */
static void still_works(void) {
  struct ibv_device_attr attributes;
  printf("handler: %s\n", ibv_query_device(id->verbs, &attributes) == 0 ? "attached" : "cut off");
  fflush(stdout);
}

int main(int count, char **words) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *to;
  struct ibv_qp_init_attr attributes = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  struct rdma_conn_param parameters = {
      .responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
  if (count != 4 || rdma_getaddrinfo(words[1], words[2], &hints, &to) != 0) return 2;
  if (rdma_create_ep(&id, to, NULL, &attributes) != 0 || rdma_connect(id, &parameters) != 0) {
    perror("exit_connected");
    return 1;
  }
  printf("connected\n");
  fflush(stdout);
  if (strcmp(words[3], "_exit") == 0) _exit(0);
  if (strcmp(words[3], "exit") == 0) atexit(still_works);
  return 0;
}
