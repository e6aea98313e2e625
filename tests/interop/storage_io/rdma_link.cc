// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/storage_io/rdma_link.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rocegw::storage_io {
namespace {

constexpr int kMostWithoutEvent = 100;

}  // namespace

void Die(const char* what) {
  std::fprintf(stderr, "storage_io: %s: %s\n", what, std::strerror(errno));
  std::exit(2);
}

EventChannel::EventChannel() : channel_(rdma_create_event_channel()) {
  if (channel_ == nullptr) Die("rdma_create_event_channel");
  if (::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) Die("fcntl");
}

std::optional<CmEvent> EventChannel::Poll() {
  pollfd entry{channel_->fd, POLLIN, 0};
  if (::poll(&entry, 1, 0) <= 0) {
    without_event_ = 0;
    return std::nullopt;
  }
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_, &event) != 0) {
    if (errno != EAGAIN) Die("rdma_get_cm_event");
    if (++without_event_ > kMostWithoutEvent) Die("the event channel is readable without an event");
    return std::nullopt;
  }
  without_event_ = 0;
  const CmEvent copy = {event->event, event->status, event->id, event->listen_id};
  rdma_ack_cm_event(event);
  return copy;
}

void EventChannel::Wait(int milliseconds) {
  pollfd entry{channel_->fd, POLLIN, 0};
  (void)::poll(&entry, 1, milliseconds);
}

Queue::Queue(rdma_cm_id* id, uint32_t sends, uint32_t receives)
    : id_(id),
      pd_(ibv_alloc_pd(id->verbs)),
      cq_(ibv_create_cq(id->verbs, static_cast<int>(sends + receives), nullptr, nullptr, 0)) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 0;
  init.cap = {sends, receives, 1, 1, 0};
  failed_ = pd_ == nullptr || cq_ == nullptr || rdma_create_qp(id, pd_, &init) != 0;
}

Queue::~Queue() {
  if (id_->qp != nullptr) rdma_destroy_qp(id_);
  for (ibv_mr* const region : regions_) ibv_dereg_mr(region);
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
}

ibv_mr* Queue::Register(void* memory, size_t bytes) {
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  ibv_mr* const region = failed_ ? nullptr : ibv_reg_mr(pd_, memory, bytes, kAccess);
  if (region == nullptr) {
    failed_ = true;
  } else {
    regions_.push_back(region);
  }
  return region;
}

void Queue::PostReceive(uint64_t wr_id, void* buffer, uint32_t bytes, const ibv_mr* region) {
  if (failed_) return;
  ibv_sge sge = {reinterpret_cast<uint64_t>(buffer), bytes, region->lkey};
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  failed_ = ibv_post_recv(id_->qp, &wr, &bad) != 0;
}

void Queue::Post(ibv_send_wr& first) {
  ibv_send_wr* bad = nullptr;
  if (!failed_) failed_ = ibv_post_send(id_->qp, &first, &bad) != 0;
}

OneSge::OneSge(ibv_wr_opcode opcode, uint64_t wr_id, void* memory, uint32_t bytes,
               const ibv_mr* region) {
  sge = {reinterpret_cast<uint64_t>(memory), bytes, region->lkey};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
}

rdma_conn_param ConnectionParameters() {
  rdma_conn_param parameters{};
  parameters.responder_resources = 16;
  parameters.initiator_depth = 16;
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  return parameters;
}

}  // namespace rocegw::storage_io
