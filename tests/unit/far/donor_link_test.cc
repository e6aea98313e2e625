// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/donor_link.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

Message Saying(MessageType type) {
  Message message;
  message.type = type;
  return message;
}

TEST(DonorLink, TakesAsManyAnswersAsWereAskedFor) {
  DonorLink link;
  link.leases_asked = 1;
  link.renewals_asked = 2;
  EXPECT_TRUE(link.TakeAnswer(Saying(MessageType::kRenewed)));
  EXPECT_TRUE(link.TakeAnswer(Saying(MessageType::kLeased)));
  EXPECT_FALSE(link.TakeAnswer(Saying(MessageType::kLeased)));
  EXPECT_TRUE(link.TakeAnswer(Saying(MessageType::kRenewed)));
  EXPECT_FALSE(link.TakeAnswer(Saying(MessageType::kRenewed)));
  EXPECT_EQ(link.leases_asked, 0);
  EXPECT_EQ(link.renewals_asked, 0);
}

TEST(DonorLink, TakesNothingThatOnlySessionsSayNorWhatIsNoMessage) {
  DonorLink link;
  link.leases_asked = link.renewals_asked = 1;
  for (const MessageType type : {MessageType::kLease, MessageType::kReturn, MessageType::kRenew}) {
    EXPECT_FALSE(link.TakeAnswer(Saying(type)));
  }
  EXPECT_FALSE(link.TakeAnswer(std::nullopt));
}

}  // namespace
}  // namespace rocegw::far
