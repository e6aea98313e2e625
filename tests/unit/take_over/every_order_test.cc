// SPDX-License-Identifier: Apache-2.0
// Both sides of a take-over in every order of events: each is killed between any two actions,
// messages wait as long as they like, deadlines pass at any time, and becoming quiet, building and
// acting may fail. There are never two gateways, and there is none only if both processes ended for
// reasons of their own.
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "gateway/take_over/predecessor.h"
#include "gateway/take_over/successor.h"

namespace rocegw::take_over {
namespace {

using OldState = Predecessor::State;
using NewState = Successor::State;

enum class Sent : char {
  kHello = 'h',
  kRefuse = 'x',
  kOffer = 'o',
  kPrepared = 'p',
  kFoundation = 'f',
  kState = 's',
  kReady = 'r',
  kCommit = 'c',
  kServing = 'S',
};

struct World {
  Predecessor old;
  Successor fresh;
  std::deque<PredecessorAction> old_does;
  std::deque<SuccessorAction> fresh_does;
  std::deque<Sent> to_old;
  std::deque<Sent> to_fresh;
  bool old_alive = true;
  bool fresh_alive = true;
  bool old_closed = false;  // the connection, by the old process
  bool old_acts = true;
  bool fresh_acts = false;
  bool becomes_quiet = false;
  bool prepares = false;
  bool builds = false;
  bool starts_to_act = false;
  bool old_killed = false;
  bool fresh_killed = false;
  bool serving_sent = false;
  bool none_allowed = false;

  std::string Key() const {
    std::string key;
    const auto add = [&](auto value) { key += static_cast<char>(static_cast<int>(value) + '0'); };
    add(old.state());
    add(fresh.state());
    for (const auto action : old_does) add(action);
    key += '|';
    for (const auto action : fresh_does) add(action);
    key += '|';
    for (const auto message : to_old) add(message);
    key += '|';
    for (const auto message : to_fresh) add(message);
    for (const bool flag :
         {old_alive, fresh_alive, old_closed, old_acts, fresh_acts, becomes_quiet, prepares, builds,
          starts_to_act, old_killed, fresh_killed, serving_sent, none_allowed}) {
      add(flag ? 1 : 0);
    }
    return key;
  }

  void Take(const Predecessor::Step& step) {
    old_does.insert(old_does.end(), step.actions.begin(), step.actions.end());
  }
  void Take(const Successor::Step& step) {
    fresh_does.insert(fresh_does.end(), step.actions.begin(), step.actions.end());
  }
};

void Tell(std::deque<Sent>& queue, bool alive, Sent message) {
  if (alive) queue.push_back(message);
}

void EndFresh(World& world) {
  world.fresh_alive = world.fresh_acts = false;
  world.fresh_does.clear();
  world.prepares = world.builds = world.starts_to_act = false;
}

void DoNextOfOld(World& world) {
  const PredecessorAction action = world.old_does.front();
  world.old_does.pop_front();
  switch (action) {
    case PredecessorAction::kOffer:
      Tell(world.to_fresh, world.fresh_alive, Sent::kOffer);
      return Tell(world.to_fresh, world.fresh_alive, Sent::kFoundation);
    case PredecessorAction::kRefuse:
      return Tell(world.to_fresh, world.fresh_alive, Sent::kRefuse);
    case PredecessorAction::kClose:
      world.old_closed = true;
      return;
    case PredecessorAction::kQuieten:
      world.old_acts = false;
      world.becomes_quiet = true;
      return;
    case PredecessorAction::kResume:
      world.old_acts = true;
      world.becomes_quiet = false;
      return;
    case PredecessorAction::kSendState:
      return Tell(world.to_fresh, world.fresh_alive, Sent::kState);
    case PredecessorAction::kCommit:
      return Tell(world.to_fresh, world.fresh_alive, Sent::kCommit);
    case PredecessorAction::kKill:
      return EndFresh(world);
    case PredecessorAction::kLeave:
      world.old_alive = false;
      return;
  }
}

void DoNextOfFresh(World& world) {
  const SuccessorAction action = world.fresh_does.front();
  world.fresh_does.pop_front();
  const bool heard = world.old_alive && !world.old_closed;
  switch (action) {
    case SuccessorAction::kSendHello:
      return Tell(world.to_old, heard, Sent::kHello);
    case SuccessorAction::kPrepare:
      world.prepares = true;
      return;
    case SuccessorAction::kSendPrepared:
      return Tell(world.to_old, heard, Sent::kPrepared);
    case SuccessorAction::kBuild:
      world.builds = true;
      return;
    case SuccessorAction::kSendReady:
      return Tell(world.to_old, heard, Sent::kReady);
    case SuccessorAction::kAct:
      world.fresh_acts = world.starts_to_act = true;
      return;
    case SuccessorAction::kSendServing:
      world.serving_sent = true;
      return Tell(world.to_old, heard, Sent::kServing);
    case SuccessorAction::kSendRefuse:
      return Tell(world.to_old, heard, Sent::kRefuse);
    case SuccessorAction::kGiveUp:
      return EndFresh(world);
    case SuccessorAction::kStartOrdinary:
      world.fresh_acts = true;
      return;
  }
}

Predecessor::Step Deliver(Predecessor& old, Sent message) {
  switch (message) {
    case Sent::kHello:
      return old.OnHello(std::nullopt);
    case Sent::kPrepared:
      return old.OnPrepared();
    case Sent::kReady:
      return old.OnReady();
    case Sent::kServing:
      return old.OnServing();
    case Sent::kRefuse:
      return old.OnRefused(Refusal::kStart);
    default:
      return old.OnMalformed();
  }
}

Successor::Step Deliver(Successor& fresh, Sent message) {
  switch (message) {
    case Sent::kOffer:
      return fresh.OnOffer();
    case Sent::kFoundation:
    case Sent::kState:
      return fresh.OnState();
    case Sent::kCommit:
      return fresh.OnCommit();
    case Sent::kRefuse:
      return fresh.OnRefused(Refusal::kSessions);
    default:
      return fresh.OnMalformed();
  }
}

// Appends the worlds that the old process's next step leads to.
void StepsOfOld(const World& world, std::vector<World>& next) {
  if (!world.old_alive) return;
  const auto add = [&](auto change) {
    World changed = world;
    change(changed);
    next.push_back(std::move(changed));
  };
  if (!world.old_does.empty()) return add(DoNextOfOld);
  if (world.becomes_quiet) {
    add([](World& w) {
      w.becomes_quiet = false;
      w.Take(w.old.OnQuiet());
    });
    add([](World& w) {
      w.becomes_quiet = false;
      w.Take(w.old.OnNotQuiet(Refusal::kSessions));
    });
  }
  if (world.old_closed || world.old.state() == OldState::kServing) return;
  if (!world.to_old.empty()) {
    return add([](World& w) {
      const Sent message = w.to_old.front();
      w.to_old.pop_front();
      w.Take(Deliver(w.old, message));
    });
  }
  if (!world.fresh_alive) return add([](World& w) { w.Take(w.old.OnClosed()); });
  add([](World& w) { w.Take(w.old.OnDeadline()); });
}

void StepsOfFresh(const World& world, std::vector<World>& next) {
  if (!world.fresh_alive) return;
  const auto add = [&](auto change) {
    World changed = world;
    change(changed);
    next.push_back(std::move(changed));
  };
  const auto fail = [](World& w) {
    w.none_allowed = w.none_allowed || w.old_killed;
    w.prepares = w.builds = w.starts_to_act = false;
    w.Take(w.fresh.OnFailed(Refusal::kStart));
  };
  if (!world.fresh_does.empty()) return add(DoNextOfFresh);
  if (world.prepares) {
    add([](World& w) {
      w.prepares = false;
      w.Take(w.fresh.OnPrepared());
    });
    return add(fail);
  }
  if (world.builds) {
    add([](World& w) {
      w.builds = false;
      w.Take(w.fresh.OnBuilt());
    });
    return add(fail);
  }
  if (world.starts_to_act) {
    add([](World& w) {
      w.starts_to_act = false;
      w.Take(w.fresh.OnActing());
    });
    return add(fail);
  }
  if (world.fresh.state() >= NewState::kServing) return;
  if (!world.to_fresh.empty()) {
    return add([](World& w) {
      const Sent message = w.to_fresh.front();
      w.to_fresh.pop_front();
      w.Take(Deliver(w.fresh, message));
    });
  }
  if (!world.old_alive || world.old_closed)
    return add([](World& w) { w.Take(w.fresh.OnClosed()); });
  add([](World& w) { w.Take(w.fresh.OnDeadline()); });
}

void Kills(const World& world, std::vector<World>& next) {
  if (world.old_alive) {
    World dead = world;
    // Alone, or once the take-over is off, it is a gateway like any other.
    dead.none_allowed = world.none_allowed || !world.fresh_alive || world.fresh_killed ||
                        world.old.state() == OldState::kServing ||
                        world.fresh.state() == NewState::kGaveUp;
    dead.old_alive = dead.old_acts = false;
    dead.old_killed = true;
    dead.old_does.clear();
    next.push_back(std::move(dead));
  }
  if (world.fresh_alive) {
    World dead = world;
    dead.none_allowed =
        world.none_allowed || !world.old_alive || world.old_killed || world.serving_sent;
    EndFresh(dead);
    dead.fresh_killed = true;
    next.push_back(std::move(dead));
  }
}

TEST(EveryOrder, NeverTwoGateways_NoneOnlyIfBothEnded) {
  World start;
  start.Take(start.old.OnConnected());
  start.Take(start.fresh.Begin());
  std::vector<World> open = {start};
  std::set<std::string> seen = {start.Key()};
  size_t ends = 0;
  size_t taken_over = 0;
  while (!open.empty()) {
    const World world = std::move(open.back());
    open.pop_back();
    ASSERT_FALSE(world.old_acts && world.fresh_acts) << "two gateways: " << world.Key();
    std::vector<World> next;
    StepsOfOld(world, next);
    StepsOfFresh(world, next);
    if (next.empty()) {
      ++ends;
      if (world.old.state() == OldState::kLeft && world.fresh_acts) ++taken_over;
      ASSERT_TRUE(world.old_acts || world.fresh_acts || world.none_allowed)
          << "no gateway: " << world.Key();
    }
    Kills(world, next);
    for (World& one : next) {
      if (seen.insert(one.Key()).second) open.push_back(std::move(one));
    }
  }
  EXPECT_GT(taken_over, 0u);
  EXPECT_GT(ends, 10u);
  RecordProperty("worlds", static_cast<int>(seen.size()));
  EXPECT_GT(seen.size(), 300u);
}

}  // namespace
}  // namespace rocegw::take_over
