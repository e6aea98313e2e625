// SPDX-License-Identifier: Apache-2.0
// Shared memory of one QP and one CQ inside the test's process, laid out like the daemon's, with
// the views of library and worker.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "gateway/client/rings/map_rings.h"

namespace rocegw::testing {

class RingMemory {
 public:
  struct Shape {
    uint32_t sq_entries = 8;
    uint32_t rq_entries = 8;
    uint32_t sges = 3;
    uint32_t payload_stride = 128;
    uint32_t max_inline = 64;
    uint32_t qp_type = ROCEGW_QPT_RC;
    uint32_t cq_entries = 16;
    uint32_t workers = 2;
    uint32_t worker = 1;
    bool signal_all = false;
    bool receive_payload = true;
  };

  RingMemory() : RingMemory(Shape()) {}
  explicit RingMemory(const Shape& shape) : shape_(shape), memory_(1u << 20) {
    reply_.handle = 77;
    reply_.qpn = 0x1234;
    reply_.sq_entries = shape.sq_entries;
    reply_.rq_entries = shape.rq_entries;
    reply_.max_send_sge = reply_.max_recv_sge = shape.sges;
    reply_.max_inline = shape.max_inline;
    reply_.worker = shape.worker;
    reply_.control = Take(sizeof(rocegw_qp_control));
    reply_.status = Take(sizeof(rocegw_qp_status));
    reply_.sq = Take(shape.sq_entries * rocegw_sq_stride(shape.sges));
    reply_.sq_payload = Take(shape.sq_entries * shape.payload_stride);
    reply_.rq = Take(shape.rq_entries * rocegw_rq_stride(shape.sges));
    if (shape.receive_payload) reply_.rq_payload = Take(shape.rq_entries * shape.payload_stride);
    reply_.sq_payload_stride = reply_.rq_payload_stride = shape.payload_stride;
    reply_.doorbell = Take(sizeof(rocegw_doorbell_page));
    reply_.doorbell_bit = 70;
    cq_control_ = Take(sizeof(rocegw_cq_control) + 64 * shape.workers);
    cq_rings_ = Take(shape.workers * shape.cq_entries * sizeof(rocegw_cqe));
    produced_.resize(shape.workers);

    mapping_.line = &line_;
    mapping_.wake_fd = -1;
    mapping_.keys = &keys_;
    mapping_.pd = kPd;
    mapping_.qp_type = shape.qp_type;
    mapping_.max_message = 1u << 30;
    mapping_.signal_all = shape.signal_all;
    map_error_ = client::MapQpRings(reply_, resolver(), mapping_, &qp_);
    qp_.send.state = qp_.receive.state = IBV_QPS_RTS;
    cq_.Init(At<rocegw_cq_control>(cq_control_), At<uint8_t>(cq_rings_), shape.cq_entries,
             shape.workers);
    cq_.Add(&qp_, true, true);
  }
  ~RingMemory() {
    cq_.Destroy();
    keys_.Clear();
  }

  client::QpRings& qp() { return qp_; }
  client::CompletionRings& cq() { return cq_; }
  client::KeyTable& keys() { return keys_; }
  rocegw_qp_reply& reply() { return reply_; }
  client::QpMapping& mapping() { return mapping_; }
  int map_error() const { return map_error_; }
  rocegw_worker_line& line() { return line_; }
  rocegw_cq_control& cq_control() { return *At<rocegw_cq_control>(cq_control_); }
  uint32_t consumer(uint32_t worker) { return cq_control().worker[worker].consumer; }

  client::LocationResolver resolver() { return {&Resolve, this}; }

  // The worker's view.
  rocegw_qp_control& control() { return *At<rocegw_qp_control>(reply_.control); }
  rocegw_qp_status& status() { return *At<rocegw_qp_status>(reply_.status); }
  rocegw_send_wqe& SendSlot(uint32_t index) {
    return *reinterpret_cast<rocegw_send_wqe*>(
        At<uint8_t>(reply_.sq) + (index & (shape_.sq_entries - 1)) * rocegw_sq_stride(shape_.sges));
  }
  rocegw_sge* SendSges(uint32_t index) {
    return reinterpret_cast<rocegw_sge*>(&SendSlot(index) + 1);
  }
  uint8_t* SendPayload(uint32_t index) {
    return At<uint8_t>(reply_.sq_payload) +
           (index & (shape_.sq_entries - 1)) * shape_.payload_stride;
  }
  rocegw_recv_wqe& ReceiveSlot(uint32_t index) {
    return *reinterpret_cast<rocegw_recv_wqe*>(
        At<uint8_t>(reply_.rq) + (index & (shape_.rq_entries - 1)) * rocegw_rq_stride(shape_.sges));
  }
  uint8_t* ReceivePayload(uint32_t index) {
    return At<uint8_t>(reply_.rq_payload) +
           (index & (shape_.rq_entries - 1)) * shape_.payload_stride;
  }
  rocegw_doorbell_page& doorbell() { return *At<rocegw_doorbell_page>(reply_.doorbell); }

  // Returns true if the QP's bit was set, and clears it.
  bool TakeDoorbell() {
    const uint64_t summary = __atomic_exchange_n(&doorbell().summary, 0, __ATOMIC_SEQ_CST);
    const uint64_t leaf = __atomic_exchange_n(&doorbell().leaf[70 / 64], 0, __ATOMIC_SEQ_CST);
    return summary == uint64_t{1} << (70 / 64) && leaf == uint64_t{1} << (70 % 64);
  }

  // Writes a completion of the QP into a worker's ring.
  void Complete(uint32_t worker, rocegw_cqe cqe) {
    cqe.qpn = cqe.qpn != 0 ? cqe.qpn : reply_.qpn;
    cqe.qp_handle = cqe.qp_handle != 0 ? cqe.qp_handle : reply_.handle;
    rocegw_cqe* slot = At<rocegw_cqe>(cq_rings_) + worker * shape_.cq_entries +
                       (produced_[worker] & (shape_.cq_entries - 1));
    memcpy(slot, &cqe, offsetof(rocegw_cqe, sequence));
    __atomic_store_n(&slot->sequence, ++produced_[worker], __ATOMIC_RELEASE);
  }

  template <typename T>
  T* At(const rocegw_location& location) {
    return reinterpret_cast<T*>(memory_.data() + location.offset);
  }

  static constexpr uint32_t kPd = 5;

 private:
  rocegw_location Take(uint64_t bytes) {
    const rocegw_location location = {0, static_cast<uint32_t>(bytes), used_};
    used_ += (bytes + 63) / 64 * 64;
    return location;
  }
  static void* Resolve(void* self, const rocegw_location& location, uint64_t) {
    return static_cast<RingMemory*>(self)->At<uint8_t>(location);
  }

  Shape shape_;
  std::vector<uint8_t> memory_;
  uint64_t used_ = 0;
  rocegw_worker_line line_{};
  rocegw_qp_reply reply_{};
  rocegw_location cq_control_{};
  rocegw_location cq_rings_{};
  std::vector<uint32_t> produced_;
  client::KeyTable keys_{};
  client::QpMapping mapping_{};
  client::QpRings qp_{};
  client::CompletionRings cq_{};
  int map_error_ = 0;
};

}  // namespace rocegw::testing
