// SPDX-License-Identifier: Apache-2.0
// Client's side of a shared receive queue in test memory: slots, the ring of their order, and the
// few lines of the client library. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "gateway/verbs/qp_config.h"

namespace rocegw::testing {

struct SharedOptions {
  uint32_t session = 1;
  uint32_t handle = 1;
  uint32_t entries = 16;
  uint32_t max_sge = 4;
  uint32_t payload_stride = 0;
  uint32_t limit = 0;
  uint32_t pd = 1;
};

class SharedEnd {
 public:
  explicit SharedEnd(const SharedOptions& options)
      : options_(options),
        order_(options.entries),
        slots_(size_t{options.entries} * rocegw_rq_stride(options.max_sge)),
        payload_(size_t{options.entries} * options.payload_stride) {
    for (uint32_t slot = options.entries; slot != 0; --slot) free_.push_back(slot - 1);
  }

  verbs::SrqConfig Srq() const {
    verbs::SrqConfig config;
    config.session = SessionId{options_.session};
    config.srq_handle = options_.handle;
    config.cookie = 1000 + options_.handle;
    config.entries = options_.entries;
    config.stride = rocegw_rq_stride(options_.max_sge);
    config.limit = options_.limit;
    config.control = &control_;
    config.order = reinterpret_cast<const uint8_t*>(order_.data());
    config.slots = slots_.data();
    return config;
  }
  // Configures a queue pair to take its receives from this queue.
  void Describe(verbs::QpConfig& config) {
    config.srq = options_.handle;
    config.srq_pd = options_.pd;
    config.rq = nullptr;
    config.rq_entries = options_.entries;
    config.max_recv_sge = options_.max_sge;
    config.rq_stride = rocegw_rq_stride(options_.max_sge);
    config.rq_payload_stride = options_.payload_stride;
    config.rq_payload = payload_.data();
  }

  // Returns false if no slot is free.
  bool PostReceive(uint64_t wr_id, const std::vector<rocegw_sge>& sges) {
    if (free_.empty()) return false;
    const uint32_t slot = free_.back();
    free_.pop_back();
    uint8_t* at = slots_.data() + size_t{slot} * rocegw_rq_stride(options_.max_sge);
    const rocegw_recv_wqe wqe{wr_id, static_cast<uint32_t>(sges.size()), 0};
    std::memcpy(at, &wqe, sizeof wqe);
    std::memcpy(at + sizeof wqe, sges.data(), sges.size() * sizeof(rocegw_sge));
    order_[control_.producer & (options_.entries - 1)] = slot;
    __atomic_store_n(&control_.producer, control_.producer + 1, __ATOMIC_RELEASE);
    return true;
  }
  // Grows the queue as the library does; SharedReceives::Grow is the daemon's part. The old payload
  // areas stay valid.
  verbs::SrqConfig Grow(uint32_t entries) {
    const uint32_t before = static_cast<uint32_t>(order_.size());
    std::vector<uint32_t> order(entries);
    for (uint32_t back = 1; back <= before; ++back) {
      const uint32_t index = control_.producer - back;
      order[index & (entries - 1)] = order_[index & (before - 1)];
    }
    order_ = std::move(order);
    slots_.resize(size_t{entries} * rocegw_rq_stride(options_.max_sge));
    for (uint32_t slot = entries; slot != before; --slot) free_.push_back(slot - 1);
    options_.entries = entries;
    return Srq();
  }
  // Frees a slot whose completion was polled.
  void Free(uint32_t slot) { free_.push_back(slot); }

  const uint8_t* payload(uint32_t slot) const {
    return payload_.data() + size_t{slot} * options_.payload_stride;
  }
  size_t free_slots() const { return free_.size(); }
  std::vector<uint32_t>& order() { return order_; }
  rocegw_srq_control& control() { return control_; }
  const SharedOptions& options() const { return options_; }

 private:
  SharedOptions options_;
  rocegw_srq_control control_{};
  std::vector<uint32_t> order_;
  std::vector<uint8_t> slots_;
  std::vector<uint8_t> payload_;
  std::vector<uint32_t> free_;
};

}  // namespace rocegw::testing
