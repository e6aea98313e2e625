// SPDX-License-Identifier: Apache-2.0
// Client's side of one queue pair in test memory: rings, completion queue, doorbell page, and the
// few lines of the client library. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gateway/verbs/qp_config.h"
#include "tests/support/qp/shared_end.h"

namespace rocegw::testing {

struct RingOptions {
  verbs::QpType type = verbs::QpType::kRc;
  uint32_t qpn = 0x11;
  uint32_t session = 1;
  uint32_t handle = 1;  // handle of QP and CQ, and doorbell bit
  uint32_t sq_entries = 64;
  uint32_t rq_entries = 64;
  uint32_t cq_entries = 1024;
  int event_fd = -1;  // receives completion events
  uint32_t max_sge = 4;
  uint32_t payload_stride = 0;     // stride of the SQ payload area
  uint32_t rq_payload_stride = 0;  // stride of the RQ payload area
  bool signal_all = false;
  verbs::ServiceMode service_mode = verbs::ServiceMode::kByTarget;
  bool any_completion_order = false;
  bool placement = false;            // memory placement extensions
  uint32_t give_up_ms = 5000;        // endpoint
  bool suspends_on_failure = false;  // endpoint
  SharedEnd* shared = nullptr;       // shared receive queue; nullptr: none
  uint32_t group = 0;                // endpoint: number of its group
  uint32_t group_key = 0;
  uint32_t tenant_tag = 0;
  uint32_t window_bytes = 0;  // limit of the pool
};

class RingEnd {
 public:
  // Address in the program, length, key.
  using Sges = std::vector<rocegw_sge>;

  explicit RingEnd(const RingOptions& options)
      : options_(options),
        sq_(size_t{options.sq_entries} * rocegw_sq_stride(options.max_sge)),
        sq_payload_(size_t{options.sq_entries} * options.payload_stride),
        rq_(size_t{options.rq_entries} * rocegw_rq_stride(options.max_sge)),
        rq_payload_(size_t{options.rq_entries} * options.rq_payload_stride),
        cq_ring_(options.cq_entries),
        cq_control_(sizeof(rocegw_cq_control) / 8 + 8) {}

  verbs::QpConfig Qp() {
    verbs::QpConfig config;
    config.type = options_.type;
    config.qpn = Qpn{options_.qpn};
    config.session = SessionId{options_.session};
    config.qp_handle = options_.handle;
    config.pd = 1;
    config.send_cq = config.recv_cq = options_.handle;
    config.signal_all = options_.signal_all;
    config.service_mode = options_.service_mode;
    config.any_completion_order = options_.any_completion_order;
    config.placement = options_.placement;
    config.give_up_ms = options_.give_up_ms;
    config.suspends_on_failure = options_.suspends_on_failure;
    config.group = Qpn{options_.group};
    config.group_key = options_.group_key;
    config.tenant_tag = options_.tenant_tag;
    config.window_bytes = options_.window_bytes;
    config.sq_entries = options_.sq_entries;
    config.rq_entries = options_.rq_entries;
    config.max_send_sge = config.max_recv_sge = options_.max_sge;
    config.sq_stride = rocegw_sq_stride(options_.max_sge);
    config.rq_stride = rocegw_rq_stride(options_.max_sge);
    config.sq_payload_stride = options_.payload_stride;
    config.rq_payload_stride = options_.rq_payload_stride;
    config.control = &control_;
    config.status = &status_;
    config.sq = sq_.data();
    config.sq_payload = sq_payload_.data();
    config.rq = rq_.data();
    config.rq_payload = rq_payload_.data();
    config.doorbell_bit = options_.handle;
    if (options_.shared != nullptr) options_.shared->Describe(config);
    return config;
  }
  verbs::CqConfig Cq() {
    verbs::CqConfig config;
    config.session = SessionId{options_.session};
    config.cq_handle = options_.handle;
    config.entries = options_.cq_entries;
    config.ring = cq_ring_.data();
    config.control = cq_control();
    config.event_fd = options_.event_fd;
    return config;
  }
  void Arm(uint32_t arm) { cq_control()->arm = arm; }

  // Returns false if the ring is full.
  bool PostSend(rocegw_send_wqe wqe, const Sges& sges,
                const std::vector<uint8_t>* inline_payload = nullptr) {
    const uint32_t index = control_.sq_producer;
    if (index - __atomic_load_n(&status_.sq_released, __ATOMIC_ACQUIRE) >= options_.sq_entries) {
      return false;
    }
    uint8_t* slot = SqSlot(index);
    wqe.num_sge = static_cast<uint8_t>(sges.size());
    std::memcpy(slot, &wqe, sizeof wqe);
    CopySges(slot + sizeof wqe, sges);
    if (inline_payload != nullptr) {
      const size_t at = size_t{index & (options_.sq_entries - 1)} * options_.payload_stride;
      std::copy(inline_payload->begin(), inline_payload->end(),
                sq_payload_.begin() + static_cast<ptrdiff_t>(at));
    }
    __atomic_store_n(&control_.sq_producer, index + 1, __ATOMIC_RELEASE);
    return true;
  }

  bool PostReceive(uint64_t wr_id, const Sges& sges) {
    const uint32_t index = control_.rq_producer;
    if (index - __atomic_load_n(&status_.rq_released, __ATOMIC_ACQUIRE) >= options_.rq_entries) {
      return false;
    }
    uint8_t* slot =
        rq_.data() + size_t{index & (options_.rq_entries - 1)} * rocegw_rq_stride(options_.max_sge);
    const rocegw_recv_wqe wqe{wr_id, static_cast<uint32_t>(sges.size()), 0};
    std::memcpy(slot, &wqe, sizeof wqe);
    CopySges(slot + sizeof wqe, sges);
    __atomic_store_n(&control_.rq_producer, index + 1, __ATOMIC_RELEASE);
    return true;
  }

  std::vector<rocegw_cqe> Poll() {
    std::vector<rocegw_cqe> out;
    for (;;) {
      const rocegw_cqe& cqe = cq_ring_[cq_consumer_ & (options_.cq_entries - 1)];
      if (__atomic_load_n(&cqe.sequence, __ATOMIC_ACQUIRE) != cq_consumer_ + 1) return out;
      out.push_back(cqe);
      ++cq_consumer_;
      __atomic_store_n(&cq_control()->worker[0].consumer, cq_consumer_, __ATOMIC_RELEASE);
    }
  }

  // Sets the doorbell bit. Returns true if the worker sleeps and needs a write to its eventfd.
  bool Ring(rocegw_doorbell_page& page, const rocegw_worker_line& line) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const uint32_t leaf = options_.handle / 64;
    __atomic_fetch_or(&page.leaf[leaf], uint64_t{1} << (options_.handle % 64), __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&page.summary, uint64_t{1} << leaf, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&line.need_wakeup, __ATOMIC_ACQUIRE) != 0;
  }

  rocegw_qp_control& control() { return control_; }
  const rocegw_qp_status& status() const { return status_; }
  uint8_t* SqSlot(uint32_t index) {
    return sq_.data() +
           size_t{index & (options_.sq_entries - 1)} * rocegw_sq_stride(options_.max_sge);
  }
  uint8_t* rq_payload(uint32_t index) {
    return rq_payload_.data() +
           size_t{index & (options_.rq_entries - 1)} * options_.rq_payload_stride;
  }
  rocegw_cq_control* cq_control() {
    return reinterpret_cast<rocegw_cq_control*>(cq_control_.data());
  }
  const RingOptions& options() const { return options_; }

 private:
  static void CopySges(uint8_t* to, const Sges& sges) {
    for (const rocegw_sge& sge : sges) {
      std::memcpy(to, &sge, sizeof sge);
      to += sizeof sge;
    }
  }

  RingOptions options_;
  rocegw_qp_control control_{};
  rocegw_qp_status status_{};
  std::vector<uint8_t> sq_, sq_payload_, rq_, rq_payload_;
  std::vector<rocegw_cqe> cq_ring_;
  std::vector<uint64_t> cq_control_;
  uint32_t cq_consumer_ = 0;
};

}  // namespace rocegw::testing
