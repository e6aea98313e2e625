// SPDX-License-Identifier: Apache-2.0
// Connection of the probe by rdma_cm, with the verbs that any program uses: an id, a queue pair, a
// completion queue and memory for messages. Throws Failure. One thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/probe_program/pattern.h"
#include "agent/probe_program/probe_lines.h"

namespace rocegw::probe {

// Parameters from the connecting end, in the private data of its request.
struct Wishes {
  uint32_t message_bytes = 64;
  uint32_t round_trips = 1000;
  uint64_t bulk_bytes = 0;
  bool plain = false;  // also the network beside RDMA
};

class Connection {
 public:
  // Messages that the other end may send without being asked.
  static constexpr uint32_t kReceives = 64;

  // Attaches to the gateway.
  Connection();
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Reports an address of the gateway and waits there until a probe connects.
  Wishes Accept();
  // `address`: as text.
  void Connect(const std::string& address, uint16_t port, const Wishes& wishes);

  // Address at which this end accepts, as text.
  const std::string& address() const { return address_; }
  // Returns true if the accepting end measures the network beside RDMA.
  bool other_measures_plain() const { return other_measures_plain_; }
  uint32_t qpn() const { return id_->qp->qp_num; }
  const uint8_t* pattern() const { return memory_.get(); }

  // Sends a part of the pattern. Waits while the send queue is full.
  void SendPattern(uint32_t offset, uint32_t length);
  void SendNumber(uint64_t number);

  struct Message {
    const uint8_t* bytes = nullptr;
    uint32_t length = 0;
    uint32_t slot = 0;
  };
  // Returns the next message; its bytes are valid until it is given back.
  Message Receive();
  void GiveBack(const Message& message) { PostReceive(message.slot); }

 private:
  struct Event {
    rdma_cm_id* id = nullptr;
    std::vector<uint8_t> private_data;
  };
  // Returns the next event. An event of another kind is a Failure.
  Event Await(rdma_cm_event_type wanted);
  void Listen();
  void MakeQueuePair();
  void PostSend(uint64_t offset, uint32_t length);
  void PostReceive(uint32_t slot);
  ibv_wc Poll();
  Message MessageOf(const ibv_wc& done) const;

  std::unique_ptr<uint8_t[]> memory_;  // pattern, numbers to send, slots of receives
  rdma_event_channel* events_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<Message> received_;  // arrived while waiting for a free send
  uint32_t sends_ = 0;             // sends in flight
  uint64_t numbers_ = 0;           // numbers sent
  std::string address_;
  bool other_measures_plain_ = false;
};

}  // namespace rocegw::probe
