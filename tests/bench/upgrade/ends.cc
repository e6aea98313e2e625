// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/upgrade/ends.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/connected.h"

namespace rocegw::bench {

void Fail(const char* what) {
  std::printf("verified_echo: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

namespace {

// Receives that are posted between an event of the limit and the next setting of it.
constexpr uint32_t kUntilLimit = 256;

void Tell(int socket, const void* what, size_t length) {
  if (send(socket, what, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length)) Fail("send");
}
void Hear(int socket, void* what, size_t length) {
  if (recv(socket, what, length, MSG_WAITALL) != static_cast<ssize_t>(length)) Fail("no peer");
}

}  // namespace

Ends::Ends(int socket, int gid_index, Shape shape)
    : socket_(socket), gid_index_(gid_index), shape_(shape) {
  const bool client = shape.queue_pairs != 0;
  if (client) {
    Tell(socket_, &shape_, sizeof shape_);
  } else {
    Hear(socket_, &shape_, sizeof shape_);
  }
  Open();
  Make();
  Introduce();
}

void Ends::Open() {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  context_ = devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (context_ == nullptr) Fail("no device");
  if (fcntl(context_->async_fd, F_SETFL, O_NONBLOCK) != 0) Fail("fcntl");
  pd_ = ibv_alloc_pd(context_);
  channel_ = ibv_create_comp_channel(context_);
  if (pd_ == nullptr || channel_ == nullptr) Fail("ibv_alloc_pd");
  const uint32_t entries = shape_.queue_pairs * (kWindow + kReceives);
  cq_ = ibv_create_cq(context_, static_cast<int>(entries), nullptr, channel_, 0);
  if (cq_ == nullptr || ibv_req_notify_cq(cq_, 0) != 0) Fail("ibv_create_cq");
  stride_ = (shape_.length + kUdHeader + 63) & ~63u;
  const uint64_t slots = uint64_t{shape_.queue_pairs} * (kWindow + kReceives);
  shape_.bytes = std::max(shape_.bytes, slots * stride_);
  memory_ = static_cast<uint8_t*>(
      mmap(nullptr, shape_.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory_ == MAP_FAILED) Fail("mmap");
  std::memset(memory_, 0x5C, shape_.bytes);
  receives_ = memory_ + uint64_t{shape_.queue_pairs} * kWindow * stride_;
  mr_ = ibv_reg_mr(pd_, memory_, shape_.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (mr_ == nullptr) Fail("ibv_reg_mr");
}

void Ends::Make() {
  if (shape_.shared != 0) {
    ibv_srq_init_attr init{};
    init.attr = {shape_.queue_pairs * kReceives, 1, 0};
    srq_ = ibv_create_srq(pd_, &init);
    if (srq_ == nullptr) Fail("ibv_create_srq");
  }
  for (uint32_t at = 0; at < shape_.queue_pairs; ++at) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.srq = srq_;
    init.qp_type = shape_.ud != 0 ? IBV_QPT_UD : IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {kWindow, srq_ == nullptr ? kReceives : 0, 1, 1, 0};
    qps_.push_back(ibv_create_qp(pd_, &init));
    if (qps_.back() == nullptr) Fail("ibv_create_qp");
    by_number_.emplace_back(qps_.back()->qp_num, at);
  }
  std::ranges::sort(by_number_);
}

void Ends::Introduce() {
  std::vector<uint32_t> mine;
  for (const ibv_qp* const qp : qps_) mine.push_back(qp->qp_num);
  ibv_gid gid{}, peer{};
  if (ibv_query_gid(context_, 1, gid_index_, &gid) != 0) Fail("ibv_query_gid");
  peers_.resize(mine.size());
  Tell(socket_, &gid, sizeof gid);
  Tell(socket_, mine.data(), mine.size() * sizeof mine[0]);
  Hear(socket_, &peer, sizeof peer);
  Hear(socket_, peers_.data(), peers_.size() * sizeof peers_[0]);
  if (shape_.ud != 0) {
    ibv_ah_attr attr{};
    attr.is_global = attr.port_num = 1;
    attr.grh.dgid = peer;
    attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
    attr.grh.hop_limit = 64;
    ah_ = ibv_create_ah(pd_, &attr);
    if (ah_ == nullptr) Fail("ibv_create_ah");
  }
  for (uint32_t at = 0; at < qps_.size(); ++at) Connect(at, peers_[at], peer);
  for (uint32_t at = 0; at < qps_.size(); ++at)
    for (uint32_t i = 0; i < kReceives; ++i) Receive(uint64_t{at} * kReceives + i);
  if (srq_ != nullptr) SetLimit();
  // Neither end sends before the other one can receive.
  char ready = 'R';
  Tell(socket_, &ready, 1);
  Hear(socket_, &ready, 1);
}

void Ends::Connect(uint32_t at, uint32_t peer, const ibv_gid& gid) {
  const auto index = static_cast<uint8_t>(gid_index_);
  if (shape_.ud == 0) {
    if (!ConnectTo(qps_[at], peer, gid, index, IBV_MTU_1024)) Fail("ibv_modify_qp");
    return;
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kNumberOfUd;
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  if (ibv_modify_qp(qps_[at], &attr, kInit) != 0) Fail("ibv_modify_qp");
  attr.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(qps_[at], &attr, IBV_QP_STATE) != 0) Fail("ibv_modify_qp");
  attr.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(qps_[at], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0) Fail("ibv_modify_qp");
}

void Ends::Send(uint32_t at, uint32_t slot) {
  ibv_sge piece{reinterpret_cast<uint64_t>(SendSlot(at, slot)), shape_.length, mr_->lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr_id = uint64_t{at} * kWindow + slot;
  if (shape_.ud != 0) request.wr.ud = {ah_, peers_[at], kNumberOfUd};
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qps_[at], &request, &bad) != 0) Fail("ibv_post_send");
}

void Ends::Receive(uint64_t number) {
  ibv_sge piece{reinterpret_cast<uint64_t>(receives_ + number * stride_),
                static_cast<uint32_t>(stride_), mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = number;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = srq_ != nullptr ? ibv_post_srq_recv(srq_, &request, &bad)
                                    : ibv_post_recv(qps_[number / kReceives], &request, &bad);
  if (error != 0) Fail("ibv_post_recv");
  if (until_limit_ != 0 && --until_limit_ == 0) SetLimit();
}

uint32_t Ends::IndexOf(uint32_t qp_num) const {
  const auto found = std::ranges::lower_bound(by_number_, std::pair{qp_num, 0u});
  if (found == by_number_.end() || found->first != qp_num) Fail("completion of no queue pair");
  return found->second;
}

// The limit is reached as soon as a few receives are taken.
void Ends::SetLimit() {
  ibv_srq_attr attr{};
  attr.srq_limit = shape_.queue_pairs * kReceives - 1;
  if (ibv_modify_srq(srq_, &attr, IBV_SRQ_LIMIT) != 0) Fail("ibv_modify_srq");
}

void Ends::TakeEvents() {
  ibv_async_event event{};
  while (ibv_get_async_event(context_, &event) == 0) {
    if (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED) Fail(ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
    ++limits_reached_;
    until_limit_ = kUntilLimit;
  }
}

int Ends::Wait(ibv_wc* done, int most) {
  int count = ibv_poll_cq(cq_, most, done);
  if (count == 0) {
    pollfd wait[] = {{channel_->fd, POLLIN, 0}, {context_->async_fd, POLLIN, 0}};
    (void)poll(wait, 2, 50);
    if (wait[1].revents != 0) TakeEvents();
    if (wait[0].revents == 0) return 0;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel_, &cq, &context) != 0) Fail("ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(cq_, 0) != 0) Fail("ibv_req_notify_cq");
    count = ibv_poll_cq(cq_, most, done);
  }
  if (count < 0) Fail("ibv_poll_cq");
  return count;
}

}  // namespace rocegw::bench
