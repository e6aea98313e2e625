// SPDX-License-Identifier: Apache-2.0
// Endpoints on each of two gateways over a scripted network. Each endpoint has a peer handle for
// each endpoint of the other side. Their programs post, poll and repost receives. Virtual time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing::endpoint {

inline constexpr uint32_t kKeyOfEndpoints = 0x4711;
inline constexpr uint32_t kMost = 6000;  // bytes of a message
inline constexpr uint32_t kGroup = 99;
inline constexpr uint32_t kGroupPeer = 200;  // handle of the group
inline constexpr uint32_t kKeyOfGroup = 0x4712;

class World {
 public:
  struct Options {
    size_t each = 1;
    verbs::ServiceMode mode = verbs::ServiceMode::kByInitiator;
    uint32_t receives = 16;
    bool any_completion_order = true;
    size_t workers = 1;
    uint32_t paths = 1;
    uint32_t give_up_ms = 50;
    uint32_t window_bytes = 0;  // window of their pool
    // Accesses the memory of side 0 instead of the worker; nullptr: the worker does.
    memory::Copier* copier = nullptr;
    memory::Copier* peer_copier = nullptr;  // the same for side 1
    // Makes all endpoints of side 1 one group.
    std::optional<verbs::Dispatch> group;
  };
  explicit World(const Options& options, uint64_t seed = 1)
      : script_(seed), gateways_(PairOptions(options)) {
    if (options.group.has_value()) {
      const worker::LinkGroup link{{SessionId{1}, Qpn{kGroup}, *options.group}};
      EXPECT_EQ(gateways_.Call(1, 0, {0, link}).error, 0);
    }
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < options.each; ++i) {
        RingOptions ring;
        ring.type = verbs::QpType::kEndpoint;
        ring.handle = static_cast<uint32_t>(i + 1);
        ring.qpn = static_cast<uint32_t>(i % 64 << 18 | (100 + i));
        ring.sq_entries = ring.rq_entries = 16;
        ring.service_mode = options.mode;
        ring.any_completion_order = options.any_completion_order;
        ring.give_up_ms = options.give_up_ms;
        ring.window_bytes = options.window_bytes;
        if (side == 1 && options.group.has_value()) {
          ring.group = kGroup;
          ring.group_key = kKeyOfGroup;
        }
        ends_[side].push_back(&gateways_.AddQp(side, ring));
        Bring(side, *ends_[side].back());
      }
    }
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < options.each; ++i) AddPeer(side, HandleOf(i), i, kKeyOfEndpoints);
      for (size_t i = 0; i < options.each; ++i)
        for (uint32_t r = 0; r < options.receives; ++r) PostReceive(side, i);
    }
    if (options.group.has_value()) AddGroup(kGroupPeer, kKeyOfGroup);
  }

  static uint32_t HandleOf(size_t endpoint) { return static_cast<uint32_t>(endpoint + 1); }
  void AddGroup(uint32_t handle, uint32_t key) { AddPeer(0, handle, 0, key, kGroup); }
  // `without`: option bits that the peer gateway lacks.
  void AddPeer(int side, uint32_t handle, size_t endpoint, uint32_t key, uint32_t number = 0,
               uint32_t without = 0) {
    const RingEnd& there = *ends_[1 - side][endpoint];
    worker::LinkPeer link{SessionId{1}, handle, {}};
    link.peer.endpoint = Qpn{number != 0 ? number : there.options().qpn};
    link.peer.key = key;
    link.peer.path.source = GatewayPair::GidOf(side);
    link.peer.path.destination = GatewayPair::GidOf(1 - side);
    link.peer.target = gateways_.TargetOf(1 - side, there);
    link.peer.target.features &= ~without;
    for (WorkerIndex w = 0; w < workers_; ++w)
      ASSERT_EQ(gateways_.Call(side, w, {0, link}).error, 0);
  }
  // Returns the offset of an endpoint's receive buffer.
  static uint64_t InboxAt(size_t endpoint, uint64_t receive) {
    return 0x80000 + (endpoint * 16 + receive) * 0x2000;
  }
  // Posts a receive, unless all inboxes are in use.
  void PostReceive(int side, size_t endpoint) {
    uint32_t& used = inboxes_[side][endpoint];
    const auto id = static_cast<uint64_t>(std::countr_one(used));
    if (id == 16) return;
    const uint64_t at = GatewayPair::kBase + InboxAt(endpoint, id);
    ASSERT_TRUE(ends_[side][endpoint]->PostReceive(id, {{at, kMost, GatewayPair::kKey[side]}}));
    used |= 1u << id;
  }
  bool Post(int side, size_t from, uint32_t peer, uint8_t opcode, uint32_t length, uint32_t id,
            uint16_t flags = 0, uint64_t remote = 0, uint32_t rkey = 0, uint64_t compare_add = 0,
            uint64_t swap = 0) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = id;
    wqe.opcode = opcode;
    wqe.flags = static_cast<uint16_t>(ROCEGW_WQE_SIGNALED | flags);
    wqe.imm_or_rkey = id;
    wqe.u.rdma.peer = peer;
    wqe.u.rdma.remote_address = GatewayPair::kBase + remote;
    wqe.u.rdma.rkey = rkey != 0 ? rkey : GatewayPair::kKey[1 - side];
    // A slot of the ring is free once its payload is no longer needed.
    const uint64_t at = NextSlot(side, from);
    const RingEnd& end = *ends_[side][from];
    if (ends_[side][from]->control().sq_producer - end.status().sq_released >= 16) return false;
    std::memset(&gateways_.memory(side)[at], static_cast<int>(id * 7 + 1), length);
    wqe.u.rdma.compare_add = compare_add;
    wqe.u.rdma.swap = swap;
    if (!ends_[side][from]->PostSend(wqe,
                                     {{GatewayPair::kBase + at, length, GatewayPair::kKey[side]}}))
      return false;
    gateways_.Ring(side, *ends_[side][from]);
    return true;
  }
  // Returns the offset of the next request's local bytes in its side's memory.
  uint64_t NextSlot(int side, size_t from) {
    return (from * 16 + ends_[side][from]->control().sq_producer % 16) * 0x2000;
  }
  uint64_t WordAt(int side, uint64_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, &gateways_.memory(side)[offset], sizeof word);
    return word;
  }
  void SetWord(int side, uint64_t offset, uint64_t word) {
    std::memcpy(&gateways_.memory(side)[offset], &word, sizeof word);
  }
  static bool Holds(const uint8_t* at, uint32_t length, uint32_t id) {
    return std::all_of(at, at + length,
                       [&](uint8_t byte) { return byte == static_cast<uint8_t>(id * 7 + 1); });
  }
  struct Received {
    uint32_t id;
    uint32_t source;
  };
  void Step() {
    gateways_.Step();
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < ends_[side].size(); ++i) {
        for (const rocegw_cqe& cqe : ends_[side][i]->Poll()) {
          if ((cqe.flags & ROCEGW_CQE_RECEIVE) == 0) {
            sent[side][i].push_back({static_cast<uint32_t>(cqe.wr_id), cqe.status});
            continue;
          }
          if (flushes && cqe.status == static_cast<uint8_t>(verbs::WcStatus::kFlush)) continue;
          EXPECT_EQ(cqe.status, 0);
          if (cqe.opcode == static_cast<uint8_t>(verbs::WcOpcode::kReceive)) {
            EXPECT_TRUE(Holds(&gateways_.memory(side)[InboxAt(i, cqe.wr_id)], cqe.byte_length,
                              cqe.imm_or_rkey))
                << "message " << cqe.imm_or_rkey;
          }
          received[side][i].push_back({cqe.imm_or_rkey, cqe.source_qpn});
          inboxes_[side][i] &= ~(1u << cqe.wr_id);
          if (repost) PostReceive(side, i);
        }
      }
    }
  }
  transport::EndpointStatus Status(int side, size_t endpoint) {
    const worker::QueryQp query{SessionId{1}, Qpn{ends_[side][endpoint]->options().qpn}};
    return gateways_.Call(side, 0, {0, query}).qps.at(0).endpoint;
  }
  // Changes the state of an endpoint.
  void Move(int side, size_t endpoint, transport::EndpointState to) {
    const worker::MoveEndpoint move{SessionId{1}, Qpn{ends_[side][endpoint]->options().qpn}, to,
                                    false};
    ASSERT_EQ(gateways_.Call(side, 0, {0, move}).error, 0);
  }
  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }
  std::vector<uint32_t> Ids(int side, size_t endpoint) {
    std::vector<uint32_t> ids;
    for (const Received& one : received[side][endpoint]) ids.push_back(one.id);
    return ids;
  }
  std::vector<uint32_t> SentIds(int side, size_t endpoint) {
    std::vector<uint32_t> ids;
    for (const auto& [id, status] : sent[side][endpoint]) ids.push_back(id);
    return ids;
  }
  void Lose(size_t skip, size_t times = 1) {
    TamperRule rule;
    rule.direction = 1;
    rule.opcode = 0xC0;
    rule.skip = skip;
    rule.times = times;
    script_.Add(rule);
  }
  GatewayPair& gateways() { return gateways_; }
  TamperScript& script() { return script_; }
  RingEnd& end(int side, size_t endpoint) { return *ends_[side][endpoint]; }

  bool repost = true;
  bool flushes = false;  // an endpoint goes into error, which flushes its receives
  std::map<size_t, std::vector<Received>> received[2];
  std::map<size_t, std::vector<std::pair<uint32_t, uint8_t>>> sent[2];

 private:
  GatewayPairOptions PairOptions(const Options& options) {
    GatewayPairOptions pair;
    pair.script = &script_;
    pair.channels = true;
    // Rules of these tests match single frames.
    for (uint32_t& features : pair.channel_features) features &= ~uint32_t{wire::kOptionBundles};
    pair.memory_bytes = 2 << 20;
    pair.channel_paths = options.paths;
    if (options.copier != nullptr) pair.copiers[0] = {options.copier};
    if (options.peer_copier != nullptr) pair.copiers[1] = {options.peer_copier};
    pair.workers[0] = pair.workers[1] = workers_ = options.workers;
    return pair;
  }
  void Bring(int side, RingEnd& end) {
    using verbs::QpState;
    verbs::QpAttributes want;
    want.qkey = kKeyOfEndpoints;
    const auto worker = static_cast<WorkerIndex>((end.options().qpn >> 18) % workers_);
    const auto step = [&](QpState state, uint32_t mask) {
      want.state = state;
      const worker::ModifyQp modify{
          SessionId{1}, Qpn{end.options().qpn}, verbs::kAttrState | mask, want, {}};
      ASSERT_EQ(gateways_.Call(side, worker, {0, modify}).error, 0);
    };
    step(QpState::kInit, verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey);
    step(QpState::kRtr, 0);
    step(QpState::kRts, verbs::kAttrSqPsn);
  }

  size_t workers_ = 1;
  TamperScript script_;
  GatewayPair gateways_;
  std::vector<RingEnd*> ends_[2];
  std::map<size_t, uint32_t> inboxes_[2];  // bit i: inbox i is posted
};

}  // namespace rocegw::testing::endpoint
