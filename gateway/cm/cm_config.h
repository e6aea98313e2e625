// SPDX-License-Identifier: Apache-2.0
// Numbers and limits of the connection manager. Timeouts in IBTA's 5-bit code are 4.096 us *
// 2^code. The defaults are what Linux puts on the wire, apart from the faster first resends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::cm {

// Unpredictable numbers: communication IDs, PSNs, transaction IDs, ports.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual uint64_t Next() = 0;
};

// Finding out who is a gateway (discovery.h).
struct DiscoveryConfig {
  bool enabled = false;  // else every peer is an RDMA device, and nothing private is sent
  uint32_t vendor_id = wire::kDefaultVendorId;  // of the MADs and of our options in CM messages
  Duration trust = Seconds(600);                // how long what was found out holds
  // An address that kept silent is asked again after that, since silence may be loss: a gateway
  // always, another address after twice as long each further time, at most `trust`.
  Duration away_rest = Seconds(10);
  Duration hint_rest = Seconds(1);  // and an RDMA device that talked like a gateway after that
  // A query, and again after once and twice `resend_after`; then it is silence.
  Duration resend_after = Milliseconds(5);
  Duration give_up = Milliseconds(20);
  uint8_t most_queries = 3;
  // The same for an address of the fleet: what is lost there is a gateway's answer.
  Duration member_give_up = Milliseconds(100);
  uint8_t member_most_queries = 6;
  size_t max_peers = 4096;
  // Answers to questions of strangers: per second and at once, all together.
  uint32_t answer_rate = 2000;
  uint32_t answer_burst = 512;
  // Likewise of each address. A member of the fleet has these limits alone.
  uint32_t source_answer_rate = 50;
  uint32_t source_answer_burst = 64;
};

// What this gateway offers to others.
struct GatewaySettings {
  uint8_t workers = 1;
  uint32_t features = 0;  // wire::GatewayOption bits
  uint32_t window = 0;    // bytes that one worker can take at once
  // By worker; needed for channels.
  std::array<Qpn, wire::kMostGatewayWorkers> acceptors{};
};

// REQs without an answer that one listener may have from one program here (request_window.h).
struct RequestWindowConfig {
  uint32_t first = 256;
  uint32_t least = 16;
  uint32_t most = 512;  // half of what Linux lets wait for a listener that names no number
  Duration interval = Milliseconds(200);
};

struct CmConfig {
  uint8_t max_depth = 16;            // READs and atomics outstanding that are offered and asked for
  uint8_t target_ack_delay = 15;     // code; what REP tells
  uint8_t packet_lifetime = 16;      // code; of a path
  uint8_t response_timeout = 20;     // code; both CM response timeouts of a REQ
  uint8_t mra_service_timeout = 24;  // code; how long a program may think about a request
  uint8_t max_cm_retries = 15;

  Duration first_resend = Milliseconds(200);  // doubles up to what the timeouts above ask for
  Duration orphan_give_up = Seconds(20);      // for a DREQ whose program is gone
  Duration answer_memory =
      Seconds(30);  // how long a refused REQ or answered SIDR_REQ is known, to answer it again
  Duration longest_timewait = Seconds(60);
  Duration longest_mra = Seconds(300);  // what a peer may ask for with an MRA

  // How long a request may be early: nobody listens yet where it goes (early_requests.h). One of
  // ours that a peer refuses for that is sent again at the shorter interval.
  Duration listener_grace = Milliseconds(100);
  Duration early_retry = Milliseconds(5);
  size_t max_early_requests = 256;

  uint16_t first_ephemeral_port = 32768;
  uint16_t last_ephemeral_port = 60999;

  size_t max_ids = 65536;
  size_t max_ids_per_owner = 16384;
  size_t max_connections = 65536;  // those in timewait and those without a program included
  size_t max_connections_per_owner = 16384;
  uint32_t max_backlog = 1024;

  DiscoveryConfig discovery;
  RequestWindowConfig request_window;

  // Answers to messages that belong to no connection: per second, and at once.
  uint32_t unsolicited_rate = 2000;
  uint32_t unsolicited_burst = 512;
};

}  // namespace rocegw::cm
