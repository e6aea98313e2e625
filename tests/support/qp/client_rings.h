// SPDX-License-Identifier: Apache-2.0
// Program's end of the rings of one queue pair and of its completion queue, as the attach protocol
// places them in shared memory. For tests in the role of the client library, well-behaved or not.
// One thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {

template <typename Wqe>
void WriteDescriptor(std::span<uint8_t> slot, const Wqe& wqe, std::span<const rocegw_sge> list) {
  std::memcpy(slot.data(), &wqe, sizeof wqe);
  if (!list.empty()) std::memcpy(slot.data() + sizeof wqe, list.data(), list.size_bytes());
}

class ClientQp {
 public:
  ClientQp() = default;
  ClientQp(TestClient& client, const rocegw_qp_reply& reply) : client_(&client), reply_(reply) {}

  const rocegw_qp_reply& reply() const { return reply_; }
  rocegw_qp_control& control() { return *As<rocegw_qp_control>(reply_.control); }
  const rocegw_qp_status& status() const { return *As<const rocegw_qp_status>(reply_.status); }
  rocegw_doorbell_page& page() { return *As<rocegw_doorbell_page>(reply_.doorbell); }
  std::span<uint8_t> SendSlot(uint32_t index) {
    const size_t stride = rocegw_sq_stride(reply_.max_send_sge);
    return {client_->At(reply_.sq) + (index & (reply_.sq_entries - 1)) * stride, stride};
  }
  std::span<uint8_t> ReceiveSlot(uint32_t index) {
    const size_t stride = rocegw_rq_stride(reply_.max_recv_sge);
    return {client_->At(reply_.rq) + (index & (reply_.rq_entries - 1)) * stride, stride};
  }
  std::span<uint8_t> SendPayload(uint32_t index) {
    return {client_->At(reply_.sq_payload) +
                size_t{index & (reply_.sq_entries - 1)} * reply_.sq_payload_stride,
            reply_.sq_payload_stride};
  }
  const uint8_t* ReceivePayload(uint32_t index) const {
    return client_->At(reply_.rq_payload) +
           size_t{index & (reply_.rq_entries - 1)} * reply_.rq_payload_stride;
  }

  // The caller makes sure that the queue has a free slot.
  void PostSend(rocegw_send_wqe wqe, std::span<const rocegw_sge> list) {
    wqe.num_sge = static_cast<uint8_t>(list.size());
    WriteDescriptor(SendSlot(control().sq_producer), wqe, list);
    __atomic_store_n(&control().sq_producer, control().sq_producer + 1, __ATOMIC_RELEASE);
  }
  void PostReceive(uint64_t wr_id, std::span<const rocegw_sge> list) {
    const rocegw_recv_wqe wqe{wr_id, static_cast<uint32_t>(list.size()), 0};
    WriteDescriptor(ReceiveSlot(control().rq_producer), wqe, list);
    __atomic_store_n(&control().rq_producer, control().rq_producer + 1, __ATOMIC_RELEASE);
  }
  void Ring() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const uint32_t leaf = reply_.doorbell_bit / 64;
    __atomic_fetch_or(&page().leaf[leaf], uint64_t{1} << (reply_.doorbell_bit % 64),
                      __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&page().summary, uint64_t{1} << leaf, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const auto* const line = As<rocegw_worker_line>(client_->lines[reply_.worker]);
    if (__atomic_load_n(&line->need_wakeup, __ATOMIC_ACQUIRE) == 0) return;
    const uint64_t one = 1;
    (void)!::write(client_->wake_fds[reply_.worker].get(), &one, sizeof one);
  }

 private:
  template <typename T>
  T* As(const rocegw_location& location) const {
    return reinterpret_cast<T*>(client_->At(location));
  }

  TestClient* client_ = nullptr;
  rocegw_qp_reply reply_{};
};

class ClientSrq {
 public:
  ClientSrq() = default;
  ClientSrq(TestClient& client, const rocegw_srq_reply& reply) : client_(&client), reply_(reply) {}

  const rocegw_srq_reply& reply() const { return reply_; }
  rocegw_srq_control& control() {
    return *reinterpret_cast<rocegw_srq_control*>(client_->At(reply_.control));
  }
  // Returns an entry of the ring that gives the order of the slots.
  uint32_t& Order(uint32_t index) {
    return reinterpret_cast<uint32_t*>(client_->At(reply_.order))[index & (reply_.entries - 1)];
  }
  std::span<uint8_t> Slot(uint32_t number) {
    const size_t stride = rocegw_rq_stride(reply_.max_sge);
    return {client_->At(reply_.slots) + (number & (reply_.entries - 1)) * stride, stride};
  }
  // Uses the slots round-robin, which is correct only if receives complete in posted order.
  void PostReceive(uint64_t wr_id, std::span<const rocegw_sge> list) {
    uint32_t& producer = control().producer;
    const rocegw_recv_wqe wqe{wr_id, static_cast<uint32_t>(list.size()), 0};
    WriteDescriptor(Slot(producer), wqe, list);
    Order(producer) = producer & (reply_.entries - 1);
    __atomic_store_n(&producer, producer + 1, __ATOMIC_RELEASE);
  }

 private:
  TestClient* client_ = nullptr;
  rocegw_srq_reply reply_{};
};

class ClientCq {
 public:
  ClientCq() = default;
  ClientCq(TestClient& client, const rocegw_cq_reply& reply)
      : client_(&client), reply_(reply), consumed_(reply.worker_count) {}

  rocegw_cq_control& control() {
    return *reinterpret_cast<rocegw_cq_control*>(client_->At(reply_.control));
  }
  uint32_t workers() const { return reply_.worker_count; }

  std::vector<rocegw_cqe> Poll() {
    std::vector<rocegw_cqe> found;
    const auto* const rings = reinterpret_cast<const rocegw_cqe*>(client_->At(reply_.rings));
    for (uint32_t w = 0; w < reply_.worker_count; ++w) {
      for (uint32_t& at = consumed_[w];; ++at) {
        const rocegw_cqe& cqe = rings[w * reply_.entries + (at & (reply_.entries - 1))];
        if (__atomic_load_n(&cqe.sequence, __ATOMIC_ACQUIRE) != at + 1) break;
        found.push_back(cqe);
      }
      __atomic_store_n(&control().worker[w].consumer, consumed_[w], __ATOMIC_RELEASE);
    }
    return found;
  }

 private:
  TestClient* client_ = nullptr;
  rocegw_cq_reply reply_{};
  std::vector<uint32_t> consumed_;
};

}  // namespace rocegw::testing
