package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/inventory"
)

// Overrides gives what operators have set for hosts, by host name.
func (s *Store) Overrides(ctx context.Context) (map[string]inventory.Override, error) {
	var rows []overrideRow
	if err := s.look(ctx, func(db *gorm.DB) error { return db.Find(&rows).Error }); err != nil {
		return nil, fmt.Errorf("read host overrides: %w", err)
	}
	overrides := make(map[string]inventory.Override, len(rows))
	for _, row := range rows {
		properties, err := decodeProperties(row.Properties)
		if err != nil {
			return nil, fmt.Errorf("read the override of host %s: %w", row.Host, err)
		}
		overrides[row.Host] = inventory.Override{Reservable: row.Reservable, Properties: properties}
	}
	return overrides, nil
}

// SaveOverride stores the whole override of a host; one that sets nothing is
// removed.
func (s *Store) SaveOverride(ctx context.Context, host string, o inventory.Override) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		if o.Reservable == nil && len(o.Properties) == 0 {
			return tx.Where("host = ?", host).Delete(&overrideRow{}).Error
		}
		properties, err := encodeProperties(o.Properties)
		if err != nil {
			return err
		}
		row := overrideRow{Host: host, Reservable: o.Reservable, Properties: properties}
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	})
	if err != nil {
		return fmt.Errorf("store the override of host %s: %w", host, err)
	}
	return nil
}

// Hidden gives the properties that only an admin may use; all are true.
func (s *Store) Hidden(ctx context.Context) (map[string]bool, error) {
	var rows []hiddenRow
	if err := s.look(ctx, func(db *gorm.DB) error { return db.Find(&rows).Error }); err != nil {
		return nil, fmt.Errorf("read hidden properties: %w", err)
	}
	hidden := make(map[string]bool, len(rows))
	for _, row := range rows {
		hidden[row.Property] = true
	}
	return hidden, nil
}

// SaveHidden hides a property from all but admins, or shows it.
func (s *Store) SaveHidden(ctx context.Context, property string, hidden bool) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		if hidden {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&hiddenRow{property}).Error
		}
		return tx.Where("property = ?", property).Delete(&hiddenRow{}).Error
	})
	if err != nil {
		return fmt.Errorf("store whether property %s is hidden: %w", property, err)
	}
	return nil
}

func encodeProperties(properties map[string]*inventory.Value) (string, error) {
	plain := make(map[string]any, len(properties))
	for name, value := range properties {
		plain[name] = nil
		if value != nil {
			plain[name] = value.Any()
		}
	}
	return encodeMap(plain)
}

func decodeProperties(text string) (map[string]*inventory.Value, error) {
	plain, err := decodeMap[any](text)
	if err != nil || plain == nil {
		return nil, err
	}
	properties := make(map[string]*inventory.Value, len(plain))
	for name, value := range plain {
		if properties[name], err = decodeValue(value); err != nil {
			return nil, fmt.Errorf("property %s: %w", name, err)
		}
	}
	return properties, nil
}

// decodeValue gives the value that Value.Any made; nil for nil.
func decodeValue(value any) (*inventory.Value, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case float64:
		return new(inventory.NumberValue(v)), nil
	case string:
		return new(inventory.StringValue(v)), nil
	case bool:
		return new(inventory.BoolValue(v)), nil
	case []any:
		elements := make([]string, len(v))
		for i, element := range v {
			text, ok := element.(string)
			if !ok {
				return nil, fmt.Errorf("a list has a %T", element)
			}
			elements[i] = text
		}
		return new(inventory.ListValue(elements)), nil
	}
	return nil, fmt.Errorf("a %T is no value", value)
}
