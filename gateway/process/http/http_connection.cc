// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace rocegw::process {
namespace {

constexpr size_t kLongestRequest = 8192;
constexpr Duration kReadWithin = Seconds(5);
constexpr Duration kWriteWithin = Seconds(10);
constexpr Duration kCloseWithin = Seconds(1);

const char* Reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

HttpConnection::HttpConnection(UniqueFd socket, const Source& source, TimePoint now)
    : socket_(std::move(socket)), source_(source), since_(now), deadline_(now + kReadWithin) {}

short HttpConnection::events() const {
  if (state_ == State::kAsked) return 0;
  return state_ == State::kWriting ? POLLOUT : POLLIN;
}

void HttpConnection::OnReady(TimePoint now) {
  switch (state_) {
    case State::kReading:
      return Read(now);
    case State::kWriting:
      return Write(now);
    case State::kClosing: {
      // Input behind the request is discarded. The first read decides: a peer that keeps sending is
      // closed at the deadline.
      char ignored[512];
      const ssize_t got = ::recv(fd(), ignored, sizeof ignored, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) Close();
      return;
    }
    case State::kAsked:  // poll then reports only errors and the end of the connection
      return Close();
    case State::kClosed:
      return;
  }
}

void HttpConnection::Read(TimePoint now) {
  char buffer[2048];
  const ssize_t got = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Close();
  request_.append(buffer, static_cast<size_t>(got));
  if (request_.find("\r\n\r\n") != std::string::npos) return ReadHead(now);
  if (request_.size() > kLongestRequest)
    Respond(std::make_shared<const Page>(Page{431, "the request is too long\n"}), now);
}

void HttpConnection::ReadHead(TimePoint now) {
  const std::string_view line = std::string_view(request_).substr(0, request_.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || target_end <= method_end ||
      !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return Respond(std::make_shared<const Page>(Page{400, "this is not HTTP/1.1\n"}), now);
  }
  const std::string_view method = line.substr(0, method_end);
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (method != "GET" && method != "HEAD")
    return Respond(std::make_shared<const Page>(Page{405, "there are GET and HEAD\n"}), now);
  with_body_ = method == "GET";
  path_ = std::string(target.substr(0, target.find('?')));
  request_.clear();
  state_ = State::kAsked;
}

void HttpConnection::Respond(std::shared_ptr<const Page> page, TimePoint now) {
  page_ = std::move(page);
  head_ = "HTTP/1.1 " + std::to_string(page_->code) + " " + Reason(page_->code) +
          "\r\nContent-Type: " + page_->type +
          "\r\nContent-Length: " + std::to_string(page_->body.size()) +
          "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n";
  state_ = State::kWriting;
  deadline_ = now + kWriteWithin;
  Write(now);
}

void HttpConnection::Write(TimePoint now) {
  const size_t body = with_body_ ? page_->body.size() : 0;
  while (sent_ < head_.size() + body) {
    const bool in_head = sent_ < head_.size();
    const size_t in_body = in_head ? 0 : sent_ - head_.size();
    iovec parts[2] = {{head_.data() + (in_head ? sent_ : 0), in_head ? head_.size() - sent_ : 0},
                      {const_cast<char*>(page_->body.data()) + in_body, body - in_body}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return Close();
    sent_ += static_cast<size_t>(sent);
  }
  // Closing with unread input would reset the connection and lose the response.
  ::shutdown(fd(), SHUT_WR);
  page_.reset();
  state_ = State::kClosing;
  deadline_ = now + kCloseWithin;
}

void HttpConnection::Close() {
  page_.reset();
  state_ = State::kClosed;
}

}  // namespace rocegw::process
