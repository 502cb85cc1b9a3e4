package store

import "gorm.io/gorm"

// The rows that migration 0008 adds, for images on hosts.

type image0008 struct {
	ID     string `gorm:"primaryKey;size:255"`
	Name   string `gorm:"size:255;not null"`
	Bytes  int64  `gorm:"not null"`
	Looked int64  `gorm:"column:looked_at;not null"`
	Gone   bool   `gorm:"not null"`
}

type imageTransfer0008 struct {
	ID           string `gorm:"primaryKey;size:64"`
	Call         string `gorm:"column:request_id;size:64;not null;index:idx_image_transfers_request"`
	Image        string `gorm:"column:image_id;size:255;not null"`
	Host         string `gorm:"size:255;not null"`
	Bytes        int64  `gorm:"not null"`
	Reservations string `gorm:"size:1048576;not null"` // ids as a JSON list
	Deadline     int64  `gorm:"column:deadline_at;not null"`
	Started      int64  `gorm:"column:started_at;not null"`
	Expected     int64  `gorm:"column:expected_at;not null"`
	Bound        int64  `gorm:"column:bound_at;not null"`
	Expire       int64  `gorm:"column:expire_at;not null;index:idx_image_transfers_expire,priority:2"`
	Begun        int64  `gorm:"column:begun_at;not null"`
	Finished     int64  `gorm:"column:finished_at;not null;index:idx_image_transfers_finished,priority:2"`
	Outcome      string `gorm:"size:16;not null;index:idx_image_transfers_finished,priority:1;index:idx_image_transfers_expire,priority:1"` // empty while it is under way
	Detail       string `gorm:"type:text;not null"`
}

type cachedImage0008 struct {
	Image    string `gorm:"column:image_id;primaryKey;size:255"`
	Host     string `gorm:"primaryKey;size:255"`
	Bytes    int64  `gorm:"not null"`
	Since    int64  `gorm:"column:since_at;not null"`
	LastUsed int64  `gorm:"column:last_used_at;not null"`
}

func (image0008) TableName() string         { return "images" }
func (imageTransfer0008) TableName() string { return "image_transfers" }
func (cachedImage0008) TableName() string   { return "cached_images" }

func addImages(tx *gorm.DB) error {
	return createMissing(tx, &image0008{}, &imageTransfer0008{}, &cachedImage0008{})
}
