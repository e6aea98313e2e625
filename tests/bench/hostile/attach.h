// SPDX-License-Identifier: Apache-2.0
// Client of the attach socket that is not bound by the library's manners: requests may be
// malformed, answers may stay unread, and descriptors may be of any kind. One thread per object.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::bench {

class Attach {
 public:
  // Connects to the socket; open() is false when the daemon does not accept the connection.
  explicit Attach(const char* path);
  ~Attach();
  Attach(const Attach&) = delete;
  Attach& operator=(const Attach&) = delete;

  bool open() const { return socket_ >= 0; }
  // Sends the bytes as one message, with a descriptor unless it is negative. Returns false when the
  // daemon closed the connection or did not read for a second.
  bool SendBytes(std::span<const uint8_t> bytes, int descriptor = -1);
  // The same with as many copies of the descriptor as one message takes.
  bool SendWithMostDescriptors(std::span<const uint8_t> bytes, int descriptor);
  int descriptor() const { return socket_; }

  template <typename T>
  static T Request(uint32_t type) {
    T request{};
    request.header.type = type;
    request.header.length = sizeof request;
    return request;
  }
  template <typename T>
  bool Send(T request, bool wants_answer = true) {
    request.header.request_id = wants_answer ? next_request_++ : 0;
    return SendBytes({reinterpret_cast<const uint8_t*>(&request), sizeof request});
  }
  // Sends the request and reads until its answer. Returns the errno of the answer, or -1 when the
  // connection is closed. The descriptor of the answer stays open in this object.
  template <typename Reply, typename T>
  int Call(const T& request, Reply& reply) {
    if (!Send(request)) return -1;
    return Answer(reinterpret_cast<uint8_t*>(&reply), sizeof reply);
  }

  bool Hello();
  // Handles of new objects; 0 when the daemon refuses.
  uint32_t OpenContext();
  uint32_t Pd(uint32_t context);
  uint32_t Cq(uint32_t context, uint32_t entries);
  uint32_t Channel(uint32_t type, uint32_t context);
  uint32_t CmId(uint32_t channel, uint64_t cookie);
  int Qp(uint32_t pd, uint32_t cq, uint32_t depth, uint32_t pieces, rocegw_qp_reply& reply);

  struct Chunk {
    uint8_t* base;
    uint64_t size;
    bool writable;
    int memory;  // memfd, closed with this object
  };
  const std::map<uint32_t, Chunk>& chunks() const { return chunks_; }
  // Eventfds that wake the workers.
  const std::vector<int>& wakes() const { return wakes_; }

 private:
  int Answer(uint8_t* out, size_t size);
  void Announced(const rocegw_reply& header, const uint8_t* message, int descriptor);

  int socket_ = -1;
  uint64_t next_request_ = 1;
  std::map<uint32_t, Chunk> chunks_;
  std::vector<int> wakes_;
  std::vector<int> descriptors_;
};

// Attack that runs until the process is killed.
struct Attack {
  const char* name;
  void (*run)(int count, char** arguments);
};
extern const std::span<const Attack> kSessionAttacks;  // arguments: path of the attach socket
extern const std::span<const Attack> kObjectAttacks;   // the same
extern const std::span<const Attack> kSharingAttacks;  // the same
// Arguments: IPv4 address to send from, the gateway's.
extern const std::span<const Attack> kPacketAttacks;
extern const std::span<const Attack> kConnectionAttacks;  // the same; a listener's port
// Arguments: as before, then numbers that the attacker has learned of the victim.
extern const std::span<const Attack> kForgedAttacks;

// A session with a queue pair, so that the daemon has announced chunks and a worker. Returns
// nullptr when the daemon refuses any of it.
std::unique_ptr<Attach> WithQueuePair(const char* path);

}  // namespace rocegw::bench
