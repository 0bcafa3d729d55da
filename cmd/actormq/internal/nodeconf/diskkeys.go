package nodeconf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
)

// diskKeys are the keys of retention and of a full disk (docs/DISK.md).
var diskKeys = []keyDef{
	{"fileReservedTime", "72", "hours until a commit-log file expires",
		unit(func(c *Config) *time.Duration { return &c.Store.FileReservedTime }, time.Hour, 1<<20)},
	{"deleteWhen", "04", "hours of the day in which expired files go, separated by semicolons",
		text(func(c *Config) *string { return &c.Store.DeleteWhen })},
	{"diskMaxUsedSpaceRatio", "75", "percent of the disk above which expired files go at any hour; 10 to 95",
		integer(func(c *Config) *int { return &c.Store.MaxUsedPercent }, 1, 100)},
	{"diskSpaceCleanForciblyRatio", "0.85", "part of the disk above which files go before they expire",
		ratio(func(c *Config) *int { return &c.Store.CleanForcibly })},
	{"diskSpaceWarningLevelRatio", "0.90", "part of the disk above which puts are refused",
		ratio(func(c *Config) *int { return &c.Store.WarningPercent })},
	{"cleanFileForciblyEnable", "true", "files may go before they expire", negated(func(c *Config) *bool { return &c.Store.NoForcedCleaning })},
	{"topicRetention", "", "hours, or a time as 90m, for which messages of topics are kept where it is not fileReservedTime: TOPIC=HOURS with ; between them",
		topicRetention},
	{"keepUnreadMessages", "false", "expired files are kept while a consumer group has not read them",
		boolean(func(c *Config) *bool { return &c.Store.KeepUnread })},
	{"keepUnreadMaxUsedSpaceRatio", "80", "percent of the disk above which they go all the same",
		integer(func(c *Config) *int { return &c.Store.UnreadMaxUsed }, 1, 100)},
	{"keepUnreadGroupTimeout", "168", "hours after which a group that has not been seen keeps nothing",
		unit(func(c *Config) *time.Duration { return &c.Store.UnreadGroupTimeout }, time.Hour, 1<<20)},
	{"cleanResourceInterval", "10000", "ms between rounds of cleaning",
		millis(func(c *Config) *time.Duration { return &c.Store.CleanInterval })},
	{"deleteCommitLogFilesInterval", "100", "ms between deletions of commit-log files",
		millis(func(c *Config) *time.Duration { return &c.Store.FilePause })},
	{"deleteConsumeQueueFilesInterval", "100", "ms between queues whose files are deleted",
		millis(func(c *Config) *time.Duration { return &c.Store.QueuePause })},
	{"destroyMapedFileIntervalForcibly", "120000", "ms until a deleted file goes though it is being read",
		millis(func(c *Config) *time.Duration { return &c.Store.DestroyFileForcibly })},
	{"redeleteHangedFileInterval", "120000", "ms until a deletion that failed is tried again",
		millis(func(c *Config) *time.Duration { return &c.Store.RedeleteInterval })},
	{"ballastBytes", "67108864", "bytes of the file that keeps room for a full disk, by default at most a commit-log file; 0 for none", ballast},
}

// ratio is a part of one, kept in percent.
func ratio(field func(*Config) *int) applier {
	return func(c *Config, value string) error {
		const percent = 100
		part, err := strconv.ParseFloat(value, 64)
		if err != nil || !(part >= 0.01 && part <= 1) {
			return fmt.Errorf("allowed is 0.01 to 1")
		}
		*field(c) = int(math.Round(part * percent))
		return nil
	}
}

func topicRetention(c *Config, value string) error {
	topics := map[string]time.Duration{}
	for part := range strings.SplitSeq(value, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		topic, text, _ := strings.Cut(part, "=")
		kept, err := time.ParseDuration(text)
		if hours, bad := strconv.ParseInt(text, 10, 64); bad == nil && hours < 1<<20 {
			kept, err = time.Duration(hours)*time.Hour, nil
		}
		if err != nil || kept <= 0 || messages.CheckTopicName(topic) != nil {
			return fmt.Errorf("%q: want TOPIC=HOURS with ; between them", part)
		}
		topics[topic] = kept
	}
	c.Store.Retention.Topics = topics
	return nil
}

func ballast(c *Config, value string) error {
	if err := number(func(c *Config) *int64 { return &c.Store.BallastBytes }, 0, 1<<40)(c, value); err != nil {
		return err
	}
	if c.Store.BallastBytes == 0 {
		c.Store.BallastBytes = -1
	}
	return nil
}
