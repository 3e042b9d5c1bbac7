#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "distributed/lobby.h"
#include "distributed/socket.h"
#include "tilewright/distributed.h"

// A connection to each of the other ranks, and the thread that watches them.
namespace tilewright::distributed {

class Links {
 public:
  Links(std::vector<Member> members, int own, std::vector<FileDescriptor> connections,
        std::chrono::milliseconds silence);
  // Tells the others that it leaves, and whom it has lost. In a child that the process has forked
  // it does nothing: the membership is the parent's.
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  const std::vector<Member>& members() const { return members_; }

  // Raises Error(usage) in a child that the process has forked.
  void require_own_process(std::string_view name) const;
  // `attached` -1: no descriptor. A rank that has died is noticed where one waits for it.
  void send(int to, std::string_view payload, Clock::time_point deadline, int attached = -1);
  // The next message of that rank; nothing once the deadline has passed. Raises Error(unavailable)
  // where any rank has died, or this one has left.
  std::optional<Frame> receive(int from, std::string_view waiting_for, Clock::time_point deadline);

  std::vector<LostRank> lost() const;
  void require_all(std::string_view waiting_for) const;
  // Whether there is a message of that rank.
  bool has_come(int from) const;

 private:
  struct Link {
    FileDescriptor connection;
    FileDescriptor process;  // readable once it has ended; none where the system has no such thing
    FrameReader reader;
    std::mutex sending;
    Clock::time_point heard;
    bool is_open = true;
    // Under mutex_:
    std::deque<Frame> messages;
    bool has_left = false;
  };

  void watch();
  void wait_for_something() const;
  void read_all();
  void read(int rank, Link& link);
  // What the other side said when it left: whom it had lost.
  void note_leaving(Link& link, std::string_view payload);
  void lose(int rank, const std::string& why);
  void send_heartbeats();
  void notice_silence(Clock::time_point now);
  void raise_lost(std::string_view waiting_for) const;

  const std::vector<Member> members_;
  const int own_;
  const std::chrono::milliseconds silence_;
  const pid_t process_;
  std::vector<Link> links_;
  FileDescriptor wake_;
  std::atomic<bool> is_ending_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<LostRank> lost_;
  std::thread watcher_;
};

}  // namespace tilewright::distributed
