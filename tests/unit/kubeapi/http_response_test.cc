// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/http_response.h"

#include <gtest/gtest.h>

#include <string>

namespace rocegw::kubeapi {
namespace {

constexpr char kGood[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
constexpr char kChunked[] =
    "HTTP/1.1 201 Created\r\ntransfer-encoding: "
    "Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";

TEST(HttpResponse, Body_ByLengthAndByChunks) {
  const auto plain = ParseHttpResponse(kGood);
  ASSERT_TRUE(plain.ok()) << plain.status().text();
  EXPECT_EQ(plain.value().status, 200);
  EXPECT_EQ(plain.value().body, "hello");
  const auto chunked = ParseHttpResponse(kChunked);
  ASSERT_TRUE(chunked.ok()) << chunked.status().text();
  EXPECT_EQ(chunked.value().status, 201);
  EXPECT_EQ(chunked.value().body, "hello");
}

// A connection that is cut is never taken for a short answer.
TEST(HttpResponse, EveryPrefix_IsRefused) {
  const std::string good = kGood;
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(ParseHttpResponse(good.substr(0, size)).ok()) << size;
  const std::string chunked = kChunked;
  // The last line end carries no information.
  for (size_t size = 0; size < chunked.size() - 2; ++size)
    EXPECT_FALSE(ParseHttpResponse(chunked.substr(0, size)).ok()) << size;
}

TEST(HttpResponse, Malformed_IsRefused) {
  for (const char* const text :
       {"HTTP/2 200\r\n\r\n", "HTTP/1.1 xyz OK\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nnocolon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
        "chunked\r\n\r\nffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n"}) {
    EXPECT_FALSE(ParseHttpResponse(text).ok()) << text;
  }
  EXPECT_TRUE(ParseHttpResponse("HTTP/1.1 204 No Content\r\n\r\n").ok());
}

}  // namespace
}  // namespace rocegw::kubeapi
