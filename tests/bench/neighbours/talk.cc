// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/neighbours/talk.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/connected.h"

namespace rocegw::bench {

void Fail(const char* what) {
  std::fprintf(stderr, "neighbour: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

namespace {

void Tell(int socket, const void* what, size_t length) {
  if (send(socket, what, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length)) Fail("send");
}
bool Hear(int socket, void* what, size_t length) {
  return recv(socket, what, length, MSG_WAITALL) == static_cast<ssize_t>(length);
}

int Reach(const Server& server) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(server.port);
  if (inet_pton(AF_INET, server.address, &to.sin_addr) != 1 ||
      connect(made, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    Fail("no server");
  }
  return made;
}

}  // namespace

Talk::Talk(const Server& server, size_t queue_pairs, uint32_t depth, size_t bytes)
    : Talk(Reach(server), server.gid_index) {
  Open({.queue_pairs = static_cast<uint32_t>(queue_pairs), .depth = depth, .bytes = bytes});
  Introduce();
}

void Talk::Serve(int client, int gid_index) {
  Talk talk(client, gid_index);
  if (!Hear(client, &talk.peer_, sizeof talk.peer_)) Fail("no client");
  talk.Open(talk.peer_);
  talk.Introduce();
  for (uint32_t at = 0; Hear(client, &at, sizeof at);) {
    if (at >= talk.size()) Fail("no such queue pair");
    talk.Reconnect(at);
    Tell(client, &at, sizeof at);
  }
}

void Talk::Open(const Introduction& wanted) {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  context_ = devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (context_ == nullptr) Fail("no device");
  me_ = wanted;
  if (ibv_query_gid(context_, 1, gid_index_, &me_.gid) != 0) Fail("ibv_query_gid");
  pd_ = ibv_alloc_pd(context_);
  channel_ = ibv_create_comp_channel(context_);
  if (pd_ == nullptr || channel_ == nullptr) Fail("ibv_alloc_pd");
  cq_ = ibv_create_cq(context_, static_cast<int>(wanted.queue_pairs * wanted.depth) + 1, nullptr,
                      channel_, 0);
  if (cq_ == nullptr || ibv_req_notify_cq(cq_, 0) != 0) Fail("ibv_create_cq");
  memory_ = static_cast<uint8_t*>(
      mmap(nullptr, wanted.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory_ == MAP_FAILED) Fail("mmap");
  std::memset(memory_, 0x5C, wanted.bytes);
  mr_ = ibv_reg_mr(pd_, memory_, wanted.bytes,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_REMOTE_ATOMIC);
  if (mr_ == nullptr) Fail("ibv_reg_mr");
  me_.address = reinterpret_cast<uint64_t>(memory_);
  me_.rkey = mr_->rkey;
  for (size_t i = 0; i < wanted.queue_pairs; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {wanted.depth, 1, 1, 1, 64};
    qps_.push_back(ibv_create_qp(pd_, &init));
    if (qps_.back() == nullptr) Fail("ibv_create_qp");
  }
}

// The client speaks first, and the server has heard the first part of it.
void Talk::Introduce() {
  const bool server = peer_.queue_pairs != 0;
  std::vector<uint32_t> mine;
  for (const ibv_qp* qp : qps_) mine.push_back(qp->qp_num);
  peers_.resize(qps_.size());
  const size_t length = mine.size() * sizeof mine[0];
  if (!server) {
    Tell(socket_, &me_, sizeof me_);
    Tell(socket_, mine.data(), length);
    if (!Hear(socket_, &peer_, sizeof peer_)) Fail("no server");
  }
  if (!Hear(socket_, peers_.data(), length)) Fail("the peer is gone");
  // Who speaks first finds its peer ready.
  if (server) {
    for (size_t at = 0; at < qps_.size(); ++at) Reconnect(at);
    Tell(socket_, &me_, sizeof me_);
    Tell(socket_, mine.data(), length);
    return;
  }
  for (size_t at = 0; at < qps_.size(); ++at) Reconnect(at);
}

void Talk::Reconnect(size_t at) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  if (ibv_modify_qp(qps_[at], &attr, IBV_QP_STATE) != 0 ||
      !ConnectTo(qps_[at], peers_[at], peer_.gid, static_cast<uint8_t>(gid_index_), IBV_MTU_4096)) {
    Fail("ibv_modify_qp");
  }
}

void Talk::Revive(size_t at) const {
  auto number = static_cast<uint32_t>(at);
  Tell(socket_, &number, sizeof number);
  if (!Hear(socket_, &number, sizeof number)) Fail("no server");
  Reconnect(at);
}

ibv_send_wr Talk::Request(ibv_wr_opcode opcode, uint32_t length) const {
  ibv_send_wr request{};
  request.opcode = opcode;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  if (length <= 64 && opcode == IBV_WR_RDMA_WRITE) request.send_flags |= IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = peer_.address;
  request.wr.rdma.rkey = peer_.rkey;
  return request;
}

void Talk::Post(size_t at, ibv_send_wr& request, const ibv_sge& sge) const {
  ibv_sge piece = sge;
  request.sg_list = &piece;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qps_[at], &request, &bad) != 0) Fail("ibv_post_send");
}

void Talk::Wait(const std::function<void(const ibv_wc&)>& completed) const {
  std::array<ibv_wc, 64> done;
  for (bool armed = false;;) {
    const int count = ibv_poll_cq(cq_, static_cast<int>(done.size()), done.data());
    if (count < 0) Fail("ibv_poll_cq");
    for (int i = 0; i < count; ++i) completed(done[static_cast<size_t>(i)]);
    if (count > 0) return;
    if (armed) break;
    if (ibv_req_notify_cq(cq_, 0) != 0) Fail("ibv_req_notify_cq");
    armed = true;
  }
  pollfd wait{channel_->fd, POLLIN, 0};
  if (poll(&wait, 1, 100) != 1) return;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_, &cq, &context) != 0) Fail("ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
}

}  // namespace rocegw::bench
