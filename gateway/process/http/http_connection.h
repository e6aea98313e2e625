// SPDX-License-Identifier: Apache-2.0
// Connection of the metrics server: one request (HTTP/1.x, GET or HEAD), one response, close. The
// descriptor does not block, the request's size is bounded, and each state has a deadline. The
// owner chooses the response. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/process/http/page_maker.h"

namespace rocegw::process {

class HttpConnection {
 public:
  // Key of the per-source limits: an IPv4 address, or the first 64 bits of an IPv6 address.
  using Source = std::array<uint8_t, 16>;

  enum class State : uint8_t {
    kReading,  // the request is not complete
    kAsked,    // the request is complete, the owner must respond
    kWriting,
    kClosing,  // the response is sent, the peer has not closed
    kClosed,
  };

  HttpConnection(UniqueFd socket, const Source& source, TimePoint now);

  int fd() const { return socket_.get(); }
  const Source& source() const { return source_; }
  State state() const { return state_; }
  TimePoint since() const { return since_; }
  TimePoint deadline() const { return deadline_; }
  // Returns the events for poll(2).
  short events() const;

  // Handles a ready or failed socket.
  void OnReady(TimePoint now);
  // Path of a complete request.
  const std::string& path() const { return path_; }
  // Sends the response. Connections share the page.
  void Respond(std::shared_ptr<const Page> page, TimePoint now);
  // Sets the deadline of the response, in kAsked.
  void AwaitUntil(TimePoint deadline) { deadline_ = deadline; }

  // Awaited page in kAsked; for the owner.
  PageMaker* maker = nullptr;
  uint64_t page_number = 0;

 private:
  void Read(TimePoint now);
  void ReadHead(TimePoint now);
  void Write(TimePoint now);
  void Close();

  UniqueFd socket_;
  const Source source_;
  State state_ = State::kReading;
  const TimePoint since_;
  TimePoint deadline_;
  std::string request_;
  std::string path_;
  bool with_body_ = true;
  std::string head_;  // head of the response
  std::shared_ptr<const Page> page_;
  size_t sent_ = 0;  // bytes of head and body sent
};

}  // namespace rocegw::process
