// SPDX-License-Identifier: Apache-2.0
// One end of a number of queue pairs whose other ends are in a program on another host: verbs
// objects, slots of memory for messages, and the exchange of addresses over TCP. Errors end the
// program.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rocegw::bench {

[[noreturn]] void Fail(const char* what);

// What both ends must have in common; the client's choice.
struct Shape {
  uint32_t queue_pairs = 0;
  uint32_t ud = 0;      // 1: queue pairs of type UD instead of RC
  uint32_t shared = 0;  // 1: one shared receive queue, with a limit that raises events
  uint32_t xrc = 0;     // 1: XRC, whose receives are those of one shared receive queue
  uint32_t length = 0;  // bytes of a message
  // Bytes of the memory that is registered in one piece. Much of it is private anonymous memory
  // that a gateway may remap.
  uint64_t bytes = 0;
};

class Ends {
 public:
  static constexpr uint32_t kWindow = 4;       // messages of a queue pair on their way
  static constexpr uint32_t kReceives = 8;     // receives of a queue pair
  static constexpr uint32_t kUdHeader = 40;    // bytes in front of a datagram
  static constexpr uint32_t kNumberOfUd = 17;  // Q_Key

  // `socket`: TCP connection to the other program. The server learns the shape from it.
  Ends(int socket, int gid_index, Shape shape);

  const Shape& shape() const { return shape_; }
  ibv_context* context() const { return context_; }
  // Sends the message in slot `slot` of the queue pair.
  void Send(uint32_t at, uint32_t slot);
  // Posts the receive again that has this number.
  void Receive(uint64_t number);
  uint8_t* SendSlot(uint32_t at, uint32_t slot) {
    return memory_ + (uint64_t{at} * kWindow + slot) * stride_;
  }
  // Returns the received message.
  const uint8_t* ReceiveSlot(uint64_t number) const {
    return receives_ + number * stride_ + (shape_.ud != 0 ? kUdHeader : 0);
  }
  // Returns the queue pair of a number.
  uint32_t IndexOf(uint32_t qp_num) const;
  // Sleeps until a completion or an asynchronous event, at most 50 ms. Returns the number of
  // completions.
  int Wait(ibv_wc* done, int most);
  // Number of reached limits of the shared receive queue. Any other event is a failure.
  uint64_t limits_reached() const { return limits_reached_; }

 private:
  void Open();
  void Make();
  void MakeXrc();
  void Introduce();
  void Connect(uint32_t at, uint32_t peer, const ibv_gid& gid);
  void ConnectXrc(ibv_qp* qp, uint32_t peer, const ibv_gid& gid) const;
  void SetLimit();
  void TakeEvents();

  int socket_;
  int gid_index_;
  Shape shape_;
  uint64_t stride_ = 0;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_ah* ah_ = nullptr;
  ibv_mr* mr_ = nullptr;
  uint8_t* memory_ = nullptr;
  uint8_t* receives_ = nullptr;
  std::vector<ibv_qp*> qps_;      // that send
  std::vector<ibv_qp*> targets_;  // that receive: of XRC
  std::vector<uint32_t> peers_;
  uint32_t peer_srq_ = 0;  // XRC: number of the peer's shared receive queue
  std::vector<std::pair<uint32_t, uint32_t>> by_number_;  // sorted
  uint64_t limits_reached_ = 0;
  uint32_t until_limit_ = 0;  // 0: the limit is set
};

}  // namespace rocegw::bench
