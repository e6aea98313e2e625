// SPDX-License-Identifier: Apache-2.0
// Two ordinary rdma_cm programs that talk to each other by reliable connections, and say what
// becomes of these until their input ends.
// Usage: peer_probe serve ADDRESS PORT      prints "listening"; takes every connection and receives
//        peer_probe connect ADDRESS PORT COUNT   so many connections, one after the other, each of
//                    another type of service, and a message on each: "2 of 2 answered"
// Then lines such as "event DISCONNECTED", "async QP_FATAL", "flushed 2" as they happen.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kTimeoutMs = 3000;
constexpr uint8_t kTosStep = 4;  // of a DSCP

struct Program {
  rdma_event_channel* events = rdma_create_event_channel();
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  char bytes[4096] = {};

  bool Prepare(ibv_context* verbs) {
    if (context != nullptr) return context == verbs;
    context = verbs;
    pd = ibv_alloc_pd(context);
    cq = pd == nullptr ? nullptr : ibv_create_cq(context, 256, nullptr, nullptr, 0);
    mr = cq == nullptr ? nullptr : ibv_reg_mr(pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE);
    return mr != nullptr;
  }
  ibv_sge Piece() const { return {reinterpret_cast<uint64_t>(bytes), 64, mr->lkey}; }
  // With two receives posted.
  bool MakeQp(rdma_cm_id* id) {
    if (!Prepare(id->verbs)) return false;
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {4, 4, 1, 1, 0};
    if (rdma_create_qp(id, pd, &attr) != 0) return false;
    for (int i = 0; i < 2; ++i) {
      ibv_sge piece = Piece();
      ibv_recv_wr receive{};
      receive.sg_list = &piece;
      receive.num_sge = 1;
      ibv_recv_wr* bad = nullptr;
      if (ibv_post_recv(id->qp, &receive, &bad) != 0) return false;
    }
    return true;
  }
  bool Send(rdma_cm_id* id) {
    ibv_sge piece = Piece();
    ibv_send_wr send{};
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    send.sg_list = &piece;
    send.num_sge = 1;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(id->qp, &send, &bad) != 0) return false;
    ibv_wc done{};
    while (ibv_poll_cq(cq, 1, &done) == 0) {
    }
    return done.status == IBV_WC_SUCCESS;
  }
  // Whether it is the one; nothing of the kind within the time: no.
  bool Await(rdma_cm_event_type wanted) {
    pollfd look{events->fd, POLLIN, 0};
    rdma_cm_event* event = nullptr;
    if (poll(&look, 1, kTimeoutMs) <= 0 || rdma_get_cm_event(events, &event) != 0) return false;
    const bool good = event->event == wanted;
    rdma_ack_cm_event(event);
    return good;
  }
  bool Connect(const sockaddr_in& to, uint8_t tos) {
    rdma_cm_id* id = nullptr;
    sockaddr_in address = to;
    rdma_conn_param param{};
    param.retry_count = 7;
    param.rnr_retry_count = 7;
    return rdma_create_id(events, &id, nullptr, RDMA_PS_TCP) == 0 &&
           rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos) == 0 &&
           rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&address), kTimeoutMs) == 0 &&
           Await(RDMA_CM_EVENT_ADDR_RESOLVED) && rdma_resolve_route(id, kTimeoutMs) == 0 &&
           Await(RDMA_CM_EVENT_ROUTE_RESOLVED) && MakeQp(id) && rdma_connect(id, &param) == 0 &&
           Await(RDMA_CM_EVENT_ESTABLISHED) && Send(id);
  }
  void TellFlushed() const {
    ibv_wc done{};
    int flushed = 0;
    while (ibv_poll_cq(cq, 1, &done) > 0) flushed += done.status == IBV_WC_WR_FLUSH_ERR ? 1 : 0;
    std::printf("flushed %d\n", flushed);
  }
  void OnCmEvent() {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(events, &event) != 0) return;
    rdma_cm_id* const id = event->id;
    const rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      rdma_conn_param param{};
      param.rnr_retry_count = 7;
      if (!MakeQp(id) || rdma_accept(id, &param) != 0) std::perror("accept");
    } else if (type != RDMA_CM_EVENT_ESTABLISHED) {
      // "RDMA_CM_EVENT_" is left out.
      std::printf("event %s\n", rdma_event_str(type) + std::strlen("RDMA_CM_EVENT_"));
      if (type == RDMA_CM_EVENT_DISCONNECTED) TellFlushed();
    }
    std::fflush(stdout);
  }
  void OnAsyncEvent() const {
    ibv_async_event event{};
    if (ibv_get_async_event(context, &event) != 0) return;
    if (event.event_type == IBV_EVENT_QP_FATAL) std::printf("async QP_FATAL\n");
    std::fflush(stdout);
    ibv_ack_async_event(&event);
  }
  // Until its input ends.
  void Watch() {
    while (true) {
      pollfd look[3] = {{STDIN_FILENO, POLLIN, 0},
                        {events->fd, POLLIN, 0},
                        {context == nullptr ? -1 : context->async_fd, POLLIN, 0}};
      if (poll(look, 3, -1) < 0 || look[0].revents != 0) return;
      if (look[1].revents != 0) OnCmEvent();
      if (look[2].revents != 0) OnAsyncEvent();
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  static Program program;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[3])));
  inet_pton(AF_INET, argv[2], &address.sin_addr);
  if (std::string(argv[1]) == "serve") {
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(program.events, &id, nullptr, RDMA_PS_TCP) != 0 ||
        rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) != 0 || rdma_listen(id, 8) != 0) {
      std::perror("listen");
      return 1;
    }
    std::printf("listening\n");
  } else {
    const int count = argc > 4 ? std::atoi(argv[4]) : 1;
    int answered = 0;
    while (answered < count && program.Connect(address, static_cast<uint8_t>(kTosStep * answered)))
      ++answered;
    std::printf("%d of %d answered\n", answered, count);
  }
  std::fflush(stdout);
  program.Watch();
  return 0;
}
